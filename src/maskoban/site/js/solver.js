// The native solver as WebAssembly (native/wasm.cpp), one board at a time, and what Python adds to it: dead cells,
// ratings (solving/rating.py, solving/reference.py) and repairs (solving/repair.py). It computes where it is called, so call it in a worker.

import { FLOOR, WALL, has, mirrored, neighbours, rotated } from "./board.js";

const MODES = ["any", "pushes", "effort", "decomposed"];
const VERDICTS = ["solved", "unsolvable", "unknown", "malformed"];
const LIMITS = [null, "states", "memory", "time"];
const DIFFICULTIES = ["easy", "medium", "hard", "expert"];
const DECOMPOSED_STATES = 1_000_000;
const GUIDED_STATES = 5_000;
const KEPT_BYTES = 64 << 20; // a module with more memory is not used again, because its memory never shrinks

export class Solver {
  #module;
  #boxoban;
  #sizes;
  #exports = null;

  // references: { boxoban: { effort: [a, b, c], decomposed: [a, b, c] }, sizes: { "8x8x2": [a, b, c] } }, the ends of the
  // quarters of the reference corpora; those of sizes are of the guided effort, for rows, columns and boxes.
  constructor(module, { boxoban, sizes }) {
    this.#module = module;
    this.#boxoban = boxoban;
    this.#sizes = Object.entries(sizes).map(([key, ends]) => [...key.split("x").map(Number), ends]);
  }

  #start() {
    if (this.#exports && this.#exports.memory.buffer.byteLength <= KEPT_BYTES) return this.#exports;
    const none = () => 8; // EBADF: there are no files
    const clock_time_get = (id, precision, place) => {
      new DataView(this.#exports.memory.buffer).setBigUint64(place, BigInt(Math.round(performance.now() * 1e6)), true);
      return 0;
    };
    const wasi_snapshot_preview1 = { clock_time_get, fd_close: none, fd_seek: none, fd_write: none };
    this.#exports = new WebAssembly.Instance(this.#module, { wasi_snapshot_preview1 }).exports;
    this.#exports._initialize();
    return this.#exports;
  }

  // limits: { states, megabytes, seconds }
  solve(board, mode = "any", { states = -1, megabytes = 256, seconds = -1 } = {}) {
    const wasm = this.#start();
    new Uint8Array(wasm.memory.buffer, wasm.tokens()).set(board.cells);
    let place;
    try {
      place = wasm.solve(board.height, board.width, MODES.indexOf(mode), states, megabytes, seconds);
    } catch (error) {
      this.#exports = null; // the browser gave it no more memory
      if (!(error instanceof WebAssembly.RuntimeError)) throw error;
      const reason = "the browser has no more memory for this search";
      return { verdict: "unknown", reason, solution: null, pushes: null, moves: null, expanded: 0, seconds: 0, limit_hit: "memory", boxes_at_once: null };
    }
    const view = new DataView(wasm.memory.buffer, place);
    const number = (i) => view.getInt32(16 + 4 * i, true);
    const text = (i) => new TextDecoder().decode(new Uint8Array(wasm.memory.buffer, number(i), number(i + 2)));
    const verdict = VERDICTS[number(0)], solved = verdict === "solved";
    return {
      verdict,
      reason: text(5),
      solution: solved ? text(6) : null,
      pushes: solved ? number(2) : null,
      moves: solved ? number(3) : null,
      expanded: view.getFloat64(0, true),
      seconds: view.getFloat64(8, true),
      limit_hit: LIMITS[number(1)],
      boxes_at_once: number(4) < 0 ? null : number(4),
    };
  }

  // [[row, column], ...] without walls
  deadCells(board) {
    const wasm = this.#start();
    new Uint8Array(wasm.memory.buffer, wasm.tokens()).set(board.cells);
    const dead = new Uint8Array(wasm.memory.buffer, wasm.dead_cells(board.height, board.width), board.cells.length);
    return [...board.cells.keys()].filter((i) => dead[i] && board.cells[i] !== WALL).map((i) => place(board, i));
  }

  rate(board, limits) {
    const unknown = { effort: null, pushes: null, moves: null, box_changes: null, box_lines: null, word: null };
    Object.assign(unknown, { decomposed_effort: null, boxes_at_once: null, decomposed_word: null, guided_effort: null, reference: null });
    const without = ({ verdict, reason, limit_hit }) => ({ verdict, reason, ...unknown, limit_hit });
    const best = this.solve(board, "pushes", limits);
    if (best.verdict === "unsolvable" || best.verdict === "malformed") return without(best);
    const effort = this.solve(board, "effort", limits);
    if (best.verdict !== "solved" && effort.verdict !== "solved") return without(effort);
    const groups = this.solve(board, "decomposed", { states: DECOMPOSED_STATES, ...limits });
    const { name, ends } = this.#reference(board), guided = this.#guidedEffort(board);
    const cut = groups.limit_hit ? `decomposed effort: ${groups.reason}` : "";
    return {
      verdict: "solved",
      reason: effort.reason || best.reason || cut,
      effort: effort.verdict === "solved" ? effort.expanded : null,
      ...count(best.verdict === "solved" ? best.solution : effort.solution),
      word: ends ? quarter(ends, guided) : this.#difficulty(effort, "effort"),
      limit_hit: effort.limit_hit ?? best.limit_hit ?? groups.limit_hit,
      decomposed_effort: groups.verdict === "solved" ? groups.expanded : null,
      boxes_at_once: groups.boxes_at_once,
      decomposed_word: this.#difficulty(groups, "decomposed"),
      guided_effort: guided,
      reference: name,
    };
  }

  // The geometric mean of the states that mode `any` expands in the eight symmetries.
  #guidedEffort(board) {
    let logs = 0;
    for (const first of [board, mirrored(board)])
      for (let turn = 0, turned = first; turn < 4; turn++, turned = rotated(turned)) {
        const { verdict, expanded } = this.solve(turned, "any", { states: GUIDED_STATES });
        if (verdict !== "solved" && verdict !== "unknown") return null;
        logs += Math.log(Math.max(expanded, 1));
      }
    return Math.round(100 * Math.exp(logs / 8)) / 100;
  }

  // The reference of a size, or the nearest: first by boxes, then by cells inside the border, then by the shorter side.
  #reference({ height, width, cells }) {
    const boxes = cells.filter(has.box).length;
    if (height === 10 && width === 10 && boxes === 4) return { name: "Boxoban medium" };
    const low = Math.min(height, width), high = Math.max(height, width);
    const inside = Math.max(low - 2, 0) * Math.max(high - 2, 0);
    const gap = ([rows, columns, count]) =>
      1_000_000 * Math.abs(count - boxes) + 100 * Math.abs((rows - 2) * (columns - 2) - inside) + Math.abs(rows - low);
    const [rows, columns, count, ends] = this.#sizes.reduce((best, each) => (gap(each) < gap(best) ? each : best));
    const nearest = rows === low && columns === high && count === boxes ? "" : ", the nearest";
    return { name: `${rows}x${columns} with ${count} box${count > 1 ? "es" : ""}${nearest}`, ends };
  }

  #difficulty(result, measure) {
    const word = quarter(this.#boxoban[measure], result.expanded);
    const larger = measure === "effort" && result.limit_hit && word === "expert"; // a cut search proves a lower bound
    return result.verdict === "solved" || larger ? word : null;
  }

  // The first removal of a wall, else of two, that makes the board solvable. `seconds` bounds each search and the whole.
  repair(board, limits, most = 2, all = Infinity) {
    const verdicts = { solved: "solvable", unsolvable: "unrepaired" };
    const { verdict, reason, limit_hit } = this.solve(board, "any", limits);
    let found = { verdict: verdicts[verdict] ?? verdict, reason, walls: [], limit_hit };
    const end = performance.now() + 1000 * all;
    for (let size = 1; size <= most && found.verdict === "unrepaired"; size++) {
      const undecided = [];
      found = { verdict: "unrepaired", reason: "", walls: [], limit_hit: null };
      for (const cells of removals(board, size)) {
        if (performance.now() > end)
          return { verdict: "unknown", reason: `time limit of ${all} seconds reached`, walls: [], limit_hit: "time" };
        const cut = { ...board, cells: board.cells.slice() };
        for (const cell of cells) cut.cells[cell] = FLOOR;
        const result = this.solve(cut, "any", limits);
        if (result.verdict === "solved") {
          found = { verdict: "repaired", reason: "", walls: [cells.map((cell) => place(board, cell))], limit_hit: null };
          break;
        }
        if (result.limit_hit) undecided.push(result);
      }
      if (undecided.length) {
        if (found.verdict === "unrepaired") found.verdict = "unknown";
        found.reason = `${undecided.length} removal${undecided.length > 1 ? "s" : ""} undecided: ${undecided[0].reason}`;
        found.limit_hit = undecided[0].limit_hit;
      }
    }
    return found;
  }
}

const quarter = (ends, number) => (number === null ? null : DIFFICULTIES[ends.filter((end) => end < number).length]);

const place = ({ width }, cell) => [Math.floor(cell / width), cell % width];

// Moves, pushes, box changes and box lines of a solution, from its letters alone.
function count(moves) {
  const steps = { l: [0, -1], r: [0, 1], u: [-1, 0], d: [1, 0] };
  let row = 0, column = 0, box = "", box_changes = 0, box_lines = 0, pushes = 0, before = "";
  for (const letter of moves) {
    const [down, right] = steps[letter.toLowerCase()], push = letter < "a";
    row += down;
    column += right;
    if (push) {
      pushes++;
      if (`${row},${column}` !== box) box_changes++;
      if (letter !== before) box_lines++;
      box = `${row + down},${column + right}`;
    }
    before = letter;
  }
  return { pushes, moves: moves.length, box_changes, box_lines };
}

// Sets of `size` interior walls in reading order, without those that open nothing.
function* removals(board, size) {
  const { cells } = board, beside = (cell, test) => neighbours(board, cell).some(test);
  const outside = exterior(board), all = [...cells.keys()];
  const walls = all.filter((i) => cells[i] === WALL && !atEdge(board, i) && !beside(i, (next) => outside.has(next)));
  const opens = new Set(walls.filter((i) => beside(i, (next) => cells[next] !== WALL)));
  if (size === 1) return yield* [...opens].map((i) => [i]);
  for (let a = 0; a < walls.length; a++)
    for (let b = a + 1; b < walls.length; b++) {
      const pair = [walls[a], walls[b]];
      const opening = pair.filter((i) => opens.has(i)).length;
      if (opening === 2 || (opening === 1 && neighbours(board, pair[0]).includes(pair[1]))) yield pair;
    }
}

function atEdge({ height, width }, cell) {
  const row = Math.floor(cell / width), column = cell % width;
  return !row || !column || row === height - 1 || column === width - 1;
}

// Floor connected to the edge of the grid and not to a player, box or goal.
function exterior(board) {
  const { cells } = board, open = (i) => cells[i] !== WALL;
  const flood = (start, through) => {
    const reached = new Set(start.filter(through));
    for (const cell of reached) for (const next of neighbours(board, cell)) if (through(next)) reached.add(next);
    return reached;
  };
  const all = [...cells.keys()], edge = all.filter((i) => open(i) && atEdge(board, i));
  if (!edge.length) return new Set();
  const inside = flood(all.filter((i) => open(i) && cells[i] !== FLOOR), open);
  return flood(edge, (i) => open(i) && !inside.has(i));
}
