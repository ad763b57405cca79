// Runs a built site's modules in Node: jobs as JSON lines in, answers as JSON lines out.
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const folder = process.argv[2];
const load = (file) => import(pathToFileURL(`${folder}/${file}`));
const [{ parse }, { Solver }, { uniforms }, { change, cost, sampleSteps }, { readLevels, writeLevels }] = await Promise.all(
  ["board.js", "solver.js", "rng.js", "sampler.js", "levels.js"].map(load),
);
const { references } = JSON.parse(readFileSync(`${folder}/site.json`));
const solver = new Solver(new WebAssembly.Module(readFileSync(`${folder}/solver.wasm`)), references);

// Logits and scores that Python computes alike: small whole numbers of the tokens and the cell.
const dummy = (batch) => ({
  batch,
  async logits(rows, cells) {
    const found = rows.flatMap((row, r) => cells[r].flatMap((cell) => {
      const sum = row.reduce((total, token, i) => (total + token * (i + 1)) % 1009, 0);
      return Array.from({ length: 7 }, (_, tile) => ((sum + 31 * cell + 17 * tile) % 13) / 4);
    }));
    return Float32Array.from(found);
  },
  async scores(rows) {
    return rows.map((row) => (row.reduce((total, token, i) => (total + token * (i + 1)) % 1009, 0) % 9) / 4 - 1);
  },
});

const JOBS = {
  solve: ({ boards, mode, limits }) => boards.map((board) => solver.solve(parse(board), mode, limits)),
  rate: ({ boards, limits }) => boards.map((board) => solver.rate(parse(board), limits)),
  repair: ({ boards, limits, walls }) => boards.map((board) => solver.repair(parse(board), limits, walls)),
  deadCells: ({ boards }) => boards.map((board) => solver.deadCells(parse(board))),
  uniforms: ({ seed, board, stream, count }) => [...uniforms(seed, board, stream, count)],
  change: ({ config, changes }) => change(config, changes),
  cost: ({ config, cells }) => cost(config, cells),
  sample: async ({ start, inside, seed, config, numbers, bound, batch }) => {
    const boards = [];
    for await (const step of sampleSteps(dummy(batch), Uint8Array.from(start), inside, seed, config, numbers, bound))
      if (step.type === "attempt")
        step.board.forEach((i, at) => step.accepted[at] && (boards[i] = { attempt: step.attempt[at], cells: [...step.boards[at]] }));
    return boards;
  },
  readLevels: ({ text, bytes }) => readLevels(text ?? Uint8Array.from(bytes)),
  writeLevels: ({ levels, format }) => writeLevels(levels, format),
};

for await (const line of createInterface({ input: process.stdin })) {
  const { kind, ...job } = JSON.parse(line);
  let answer;
  try {
    answer = { result: await JOBS[kind](job) };
  } catch (error) {
    answer = { error: error.message };
  }
  console.log(JSON.stringify(answer));
}
