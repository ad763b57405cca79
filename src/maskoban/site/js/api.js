// The backend of the static site, in place of the studio's api.js, whose head describes every function: the model and
// the solver run in workers of this page. Nothing leaves the browser.

import { BOX, BOX_ON_GOAL, GOAL, MASK, PLAYER, PLAYER_ON_GOAL, WALL, has, parse } from "./board.js";
import { boardText } from "./levels.js";
import { change, cost } from "./sampler.js";

export class Refused extends Error {}

export const FORMATS = "XSB, .sok, .slc, Boxoban";
export const MAX_BYTES = 600_000; // bounds the time that one call takes

const SOLVERS = 2; // one may search for long
const MAX_SAMPLED = 20; // boards sampled for each board of a filter
const [SECONDS, RATE_SECONDS, REPAIR_SECONDS] = [5, 2, 20];

export const onConnection = () => {}; // it cannot be lost

const loadingListeners = new Set();
let loading; // the last state: undefined, { loaded, total } or null
export function onLoading(listener) {
  loadingListeners.add(listener);
  if (loading !== undefined) listener(loading);
}

// --- workers ---

const newWorker = (file) => new Worker(new URL(file, import.meta.url), { type: "module" });
let lastId = 0;

const aborted = (signal) => signal?.reason ?? new DOMException("The work was stopped.", "AbortError");

// Runs `start(resolve, reject)` unless the signal is aborted; `stop` ends it when it is.
function abortable(signal, start, stop) {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(aborted(signal));
    const end = () => (stop(), reject(aborted(signal)));
    signal?.addEventListener("abort", end, { once: true });
    const after = (settle) => (value) => (signal?.removeEventListener("abort", end), settle(value));
    start(after(resolve), after(reject));
  });
}

// Solver jobs: each has a worker to itself, and waits for one. A search that is not wanted any more ends with its worker.
class Solvers {
  #idle = [];
  #waiting = [];
  #started;

  constructor(started) {
    this.#started = started; // resolves to what every worker gets first
    for (let i = 0; i < SOLVERS; i++) this.#add();
  }

  async #add() {
    const first = await this.#started.catch(() => null);
    if (!first) return;
    const worker = newWorker("solver-worker.js");
    worker.postMessage(first);
    this.#idle.push(worker);
    this.#next();
  }

  #next() {
    while (this.#idle.length && this.#waiting.length) this.#waiting.shift()(this.#idle.shift());
  }

  async run(kind, job, signal) {
    await this.#started;
    let worker = null, begin = null;
    return abortable(
      signal,
      (resolve, reject) => {
        begin = (given) => {
          worker = given;
          const done = (settle, value) => {
            worker.onmessage = worker.onerror = null;
            this.#idle.push(worker);
            settle(value);
            this.#next();
          };
          worker.onmessage = ({ data }) => ("fault" in data ? done(reject, new Error(data.fault)) : done(resolve, data.result));
          worker.onerror = ({ message }) => done(reject, new Error(message));
          worker.postMessage({ kind, ...job });
        };
        this.#waiting.push(begin);
        this.#next();
      },
      () => {
        this.#waiting = this.#waiting.filter((each) => each !== begin);
        if (!worker) return;
        worker.terminate();
        this.#add();
      },
    );
  }
}

// --- start ---

let site = null; // site.json: { model, first, margin, bound, references, files }
let sampling;
const deferred = () => {
  const made = {};
  made.promise = new Promise((resolve, reject) => Object.assign(made, { resolve, reject }));
  made.promise.catch(() => {}); // whoever waits for it hears of it
  return made;
};
// The page asks before it connects; its questions wait.
const described = deferred(), started = deferred(), ready = deferred();
const solvers = new Solvers(started.promise);

export async function connect() {
  try {
    await start();
  } catch (error) {
    for (const each of [described, started, ready]) each.reject(error);
    throw error;
  }
}

async function start() {
  const missing = ["WebAssembly", "Worker", "DecompressionStream"].find((name) => !(name in self));
  if (missing) throw new Refused(`This browser has no ${missing}. A current one is needed.`);
  try {
    const answer = await fetch("site.json");
    if (!answer.ok) throw new Error(`the server answered ${answer.status}`);
    site = await answer.json();
    described.resolve();
  } catch (error) {
    throw new Refused(`The site could not be loaded: ${error.message}. Reload the page.`);
  }
  navigator.serviceWorker?.register("service-worker.js").catch(() => {}); // private windows may refuse
  WebAssembly.compileStreaming(fetch("solver.wasm"))
    .catch(async () => WebAssembly.compile(await (await fetch("solver.wasm")).arrayBuffer())) // no media type for it
    .then((module) => started.resolve({ module, references: site.references }), started.reject);
  sampling = newWorker("sampling-worker.js");
  sampling.addEventListener("message", ({ data }) => {
    if ("loading" in data) {
      loading = data.loading;
      for (const listener of loadingListeners) listener(loading);
      if (loading === null) ready.resolve();
    } else if ("failed" in data) ready.reject(new Refused(`The model could not be loaded: ${data.failed}. Reload the page.`));
  });
  sampling.addEventListener("error", (error) => ready.reject(new Refused(`The model could not be loaded: ${error.message}`)));
  sampling.postMessage({ files: site.files });
}

export async function firstBoards() {
  await described.promise;
  return site.first;
}

export const model = (signal) =>
  abortable(signal, (resolve, reject) => ready.promise.then(() => resolve(site.model), reject), () => {});

// --- solver ---

function tokens(text) {
  try {
    return parse(text);
  } catch (error) {
    throw new Refused(`board: ${error.message}`);
  }
}

async function solver(kind, { board, ...job }, signal) {
  try {
    return await solvers.run(kind, { board: tokens(board), ...job }, signal);
  } catch (error) {
    if (error instanceof Refused || error.name === "AbortError") throw error;
    throw new Refused(`The solver failed: ${error.message}`);
  }
}

export const solve = ({ board, mode = "any", seconds = SECONDS }, signal) => solver("solve", { board, mode, seconds }, signal);
export const rate = ({ board }, signal) => solver("rate", { board, seconds: RATE_SECONDS }, signal);
export const repair = ({ board }, signal) => solver("repair", { board, seconds: REPAIR_SECONDS / 4, all: REPAIR_SECONDS }, signal);
export const deadCells = ({ board }, signal) => solver("deadCells", { board }, signal);

// --- sampling ---

// The steps of the sampler in the worker, as they come. Whoever stops listening ends them.
async function* steps(request, signal) {
  const id = ++lastId, queue = [];
  let wake = () => {}, done = false;
  const hear = ({ data }) => {
    if (data.id !== id) return;
    if (data.step) queue.push(data.step);
    else done = data;
    wake();
  };
  const stop = () => wake();
  sampling.addEventListener("message", hear);
  signal?.addEventListener("abort", stop);
  try {
    sampling.postMessage({ id, ...request });
    for (;;) {
      signal?.throwIfAborted();
      if (queue.length) yield queue.shift();
      else if (done) break;
      else await new Promise((resolve) => (wake = resolve));
    }
    if (done.fault) throw new Refused(`The sampler failed: ${done.fault}`);
  } finally {
    sampling.removeEventListener("message", hear);
    signal?.removeEventListener("abort", stop);
    if (!done) sampling.postMessage({ id, stop: true });
  }
}

// The cells that the network sees.
function interior({ height, width }, margin) {
  const cells = [];
  for (let r = margin; r < height - margin; r++) for (let c = margin; c < width - margin; c++) cells.push(r * width + c);
  return cells;
}

function blank({ height, width }, inside) {
  const cells = new Uint8Array(height * width).fill(WALL);
  for (const cell of inside) cells[cell] = MASK;
  return cells;
}

// The board to complete, checked as Model.check_completable does it.
function given(text, { name, height, width }, inside) {
  const board = tokens(text);
  if (board.height !== height || board.width !== width) {
    const hint = board.height <= height && board.width <= width ? "; surround it with #" : "";
    throw new Refused(`the board is ${board.height}x${board.width}, but model '${name}' draws ${height}x${width} boards${hint}`);
  }
  const cells = board.cells.slice(), within = new Set(inside);
  for (const i of cells.keys()) {
    if (within.has(i)) continue;
    if (cells[i] === MASK) cells[i] = WALL;
    if (cells[i] !== WALL) {
      const where = `row ${Math.floor(i / width) + 1}, column ${(i % width) + 1}`;
      throw new Refused(`the border must be wall, but ${where} is not`);
    }
  }
  const count = (test) => cells.filter(test).length;
  const players = count(has.player), boxes = count(has.box), goals = count(has.goal), masked = count((tile) => tile === MASK);
  if (players > 1) throw new Refused(`the board has ${players} players; expected at most one`);
  const spare = masked - (players ? 0 : 1);
  if (masked && (spare < 0 || boxes > goals + masked || goals > boxes + spare))
    throw new Refused(`the board has ${boxes} boxes and ${goals} goals, and ${masked} masked cells cannot make up the difference`);
  return cells;
}

const LETTERS = "# @$.*+?";
function text(cells, width) {
  const rows = [];
  for (let i = 0; i < cells.length; i += width) rows.push(Array.from(cells.subarray(i, i + width), (tile) => LETTERS[tile]).join(""));
  return boardText(rows);
}

async function* sample(request, signal) {
  await described.promise;
  signal?.throwIfAborted();
  const facts = site.model;
  const { count, only_solvable = false, difficulty = null, sampler = "best", temperature, sweeps, steps: evaluations, critic } = request;
  const seed = request.seed ?? Math.floor(Math.random() * 1_000_000);
  const named = facts.samplers.find(({ name }) => name === sampler);
  if (!named) throw new Refused(`sampler: expected one of ${facts.samplers.map(({ name }) => name).join(", ")}, got '${sampler}'`);
  const changes = { temperature, sweeps, steps: evaluations, precision: request.precision };
  const config = change(named.config, { ...changes, critic: request.board === undefined ? critic : false });
  const inside = interior(facts, site.margin);
  const start = request.board === undefined ? blank(facts, inside) : given(request.board, facts, inside);
  const masked = start.filter((tile) => tile === MASK).length;
  yield { type: "start", seed, count, model: facts.name, board: text(start, facts.width), sampler: config, evaluations: cost(config, masked) };
  await model(signal); // what is begun is seen while the model is still loading
  let kept = 0, sampled = 0;
  while (kept < count && sampled < MAX_SAMPLED * count) {
    const numbers = Array.from({ length: count - kept }, (_, i) => sampled + i);
    sampled += numbers.length;
    yield { type: "boards", numbers };
    for await (const step of steps({ start, inside, seed, config, numbers, bound: site.bound }, signal)) {
      const which = step.board.map((i) => numbers[i]);
      if (step.type === "commit") {
        const probabilities = step.probabilities.map((p) => p.map((share) => Math.round(share * 1e4) / 1e4));
        yield { type: "commit", numbers: which, cells: step.cell, tiles: step.tile, probabilities };
        continue;
      }
      yield { type: "attempt", numbers: which, accepted: step.accepted };
      for (const i of which.keys()) {
        if (!step.accepted[i]) continue;
        const board = text(step.boards[i], facts.width);
        const judgement = await rate({ board }, signal);
        const matches = (judgement.verdict === "solved" || !only_solvable) && [null, judgement.word].includes(difficulty);
        kept += matches;
        const title = `${facts.name} ${seed}-${which[i]}`;
        yield { type: "judged", number: which[i], title, board, attempts: step.attempt[i] + 1, judgement, kept: matches };
      }
    }
  }
  yield { type: "end", kept, sampled };
}

export const generate = (request, signal) => sample(request, signal);
export const complete = (request, signal) => sample(request, signal);

// --- files ---

let filesWorker;
const jobs = new Map();

function file(kind, job, transfer = []) {
  if (!filesWorker) {
    filesWorker = newWorker("files-worker.js");
    filesWorker.onmessage = ({ data: { id, result, refused, fault } }) => {
      const { resolve, reject } = jobs.get(id);
      jobs.delete(id);
      if (refused !== undefined) reject(new Refused(refused));
      else if (fault !== undefined) reject(new Refused(`The file could not be made: ${fault}`));
      else resolve(result);
    };
  }
  const id = ++lastId;
  filesWorker.postMessage({ id, kind, ...job }, transfer);
  return new Promise((resolve, reject) => jobs.set(id, { resolve, reject }));
}

export const readLevels = (content) => file("readLevels", { content });
export const writeLevels = (levels, format) => file("writeLevels", { levels, format });

// The tiles at this size. A worker cannot rasterise SVG.
async function sheet(cell) {
  const image = new Image();
  image.src = "tiles.svg";
  await image.decode();
  const canvas = document.createElement("canvas");
  const [columns, rows] = [image.naturalWidth / 64, image.naturalHeight / 64];
  [canvas.width, canvas.height] = [columns * cell, rows * cell];
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  return createImageBitmap(canvas);
}

export async function picture({ board: drawn, format, solution = "" }, signal) {
  const board = tokens(drawn), side = Math.max(board.height, board.width);
  const [most, pixels] = format === "png" ? [48, 1600] : [32, 800];
  const cell = Math.max(8, Math.min(most, Math.floor(pixels / side)));
  let moves = solution;
  if (format === "gif" && !moves) {
    const found = await solve({ board: drawn, mode: "pushes" }, signal);
    if (!found.solution) throw new Refused(`there is no solution to animate: the board is ${found.verdict}`);
    moves = found.solution;
  }
  const tiles = await sheet(cell);
  return file(format, { board, moves, sheet: tiles, cell }, [tiles]);
}
