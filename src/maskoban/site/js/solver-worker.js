// A worker that answers one solver job at a time. A search is cancelled by ending its worker.
//   in:  { module, references } once, then { id, kind, board, ... }
//   out: { id, result } or { id, fault }

import { Solver } from "./solver.js";

let solver;
const JOBS = {
  solve: ({ board, mode, ...limits }) => solver.solve(board, mode, limits),
  rate: ({ board, ...limits }) => solver.rate(board, limits),
  repair: ({ board, all, ...limits }) => solver.repair(board, limits, 2, all),
  deadCells: ({ board }) => solver.deadCells(board),
};

self.onmessage = ({ data }) => {
  if (data.module) {
    solver = new Solver(data.module, data.references);
    return;
  }
  const { id, kind, ...job } = data;
  try {
    postMessage({ id, result: JOBS[kind](job) });
  } catch (error) {
    postMessage({ id, fault: String(error) });
  }
};
