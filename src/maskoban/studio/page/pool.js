// Proved boards drawn ahead, so that the next one is there at once. They wait in the browser's storage.

import { firstBoards, generate } from "./api.js";
import { copy, parse } from "./board.js";
import { keep, recall } from "./store.js";

const AHEAD = 3; // boards that wait for whoever plays with this difficulty
const MOST = 8; // of any one difficulty: what is drawn on the way to another is not thrown away
const PATIENCE = { ahead: 12, waited: 60 }; // boards in a row that do not suit, before it is given up

let shelf = recall("pool", []); // { board, title, word, pushes }
let wish = ""; // the difficulty; "" takes any
let wanted = () => false; // whether somebody plays
let filling = false;
let waiting = null; // { resolve, reject } of whoever waits for a board
let onDraw = () => {};

const suits = (each) => !wish || each.word === wish;
const short = () => shelf.filter(suits).length < AHEAD;

// `active` says whether to draw ahead; `draw(board)` is called with the board that is being drawn, while somebody waits.
export function start(active, draw) {
  wanted = active;
  onDraw = draw;
  if (recall("pool", null) === null) begin().catch(() => {}); // a first visit
}

// Boards that the backend brings along are there before the model is; nobody else has them in this order.
async function begin() {
  for (const board of (await firstBoards()).sort(() => Math.random() - 0.5)) add(board);
}

export const choose = (word) => (wish = word);

function take() {
  shelf = recall("pool", shelf); // another window may have taken some
  const place = shelf.findIndex(suits);
  const [taken = null] = place < 0 ? [] : shelf.splice(place, 1);
  if (taken) keep("pool", shelf);
  return taken;
}

// The next board; where none waits, as soon as one is drawn.
export async function next(signal) {
  const taken = take();
  fill();
  if (taken) return taken;
  return new Promise((resolve, reject) => {
    waiting = { resolve, reject };
    signal.addEventListener("abort", () => ((waiting = null), reject(signal.reason)));
    fill();
  });
}

export async function fill() {
  if (filling) return;
  filling = true;
  let vain = 0;
  try {
    while (waiting || (wanted() && short() && vain < PATIENCE.ahead)) {
      if (vain === PATIENCE.waited) throw new Error(`${vain} boards were drawn, and none is ${wish}.`);
      vain += 1;
      for await (const event of generate({ count: 1, only_solvable: true })) if (hear(event)) vain = 0;
    }
  } catch (error) {
    waiting?.reject(error);
    waiting = null;
  }
  filling = false;
}

let board = null, blank = null;
// True for a board that suits.
function hear(event) {
  if (event.type === "start") blank = parse(event.board);
  else if (event.type === "boards" || (event.type === "attempt" && !event.accepted[0])) board = copy(blank);
  else if (event.type === "commit") {
    event.cells.forEach((cell, i) => (board.cells[cell] = event.tiles[i]));
    if (waiting) onDraw(board);
  } else if (event.type === "judged" && event.judgement.verdict === "solved") {
    const { title, judgement } = event;
    return add({ board: event.board, title, word: judgement.word, pushes: judgement.pushes });
  }
  return false;
}

function add(entry) {
  shelf = recall("pool", shelf);
  if (shelf.some((each) => each.board === entry.board)) return false;
  if (waiting && suits(entry)) {
    waiting.resolve(entry);
    waiting = null;
  } else if (shelf.filter((each) => each.word === entry.word).length < MOST) {
    shelf.push(entry);
    keep("pool", shelf);
  }
  return suits(entry);
}
