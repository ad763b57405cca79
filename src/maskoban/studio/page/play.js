// Play: keys, clicks, drags and swipes become steps; the server is asked for par, hints and warnings.

import { deadCells, onConnection, rate as rateBoard, solve } from "./api.js";
import { format, parse } from "./board.js";
import { $, Newest, copyText, enable, plural, toast } from "./dom.js";
import { Game } from "./game.js";
import { linkTo } from "./share.js";
import { FULL, best, keep, pushesOf, recall, table } from "./store.js";
import { BoardView } from "./view.js";

// What the table holds before anybody has put a board on it.
const WELCOME = "##########\n###  #####\n#   $  ###\n# # .#  ##\n#  $.@$ ##\n##  #.  ##\n###     ##\n##########\n##########\n##########";
const KEYS = {
  ArrowLeft: "l", ArrowUp: "u", ArrowRight: "r", ArrowDown: "d", a: "l", w: "u", d: "r", s: "d",
};
const WORDS = { l: "left", u: "up", r: "right", d: "down" };
const still = matchMedia("(prefers-reduced-motion: reduce)");

const DOUBLE_CLICK = 400; // milliseconds

let game, text, title, view;
let trouble = ""; // what is wrong with the board itself, however it is played
let chosen, routes = new Map(); // the box taken in hand, and where it can go
let pressed = null; // where a pointer went down
let sent = null; // where a click sent a box last, and when
let dead = null;
let ahead = null; // all moves, when those still to come are a solution
let helped = false; // the solution was looked at, so a win is not one's own
let aside = null; // the game that waits while one's best is shown
let timer = null, queue = "";
let hintCells = null;
const watching = new Newest(), hinting = new Newest(), rating = new Newest(), shading = new Newest();

export function start({ open, keepBoard }) {
  view = new BoardView($("play-board"), "The game. ");
  for (const id of ["shade", "warn"]) $(id).checked = recall(id, $(id).checked);
  const saved = table.recall("play");
  try {
    load(saved.text, saved.title, saved);
  } catch {
    load(WELCOME); // nothing there, or nothing that is a board
  }
  addEventListener("keydown", onKey);
  const canvas = view.canvas;
  canvas.onpointerdown = onDown;
  canvas.onpointermove = onMove;
  canvas.onpointerup = onUp;
  canvas.onpointercancel = (event) => event.isPrimary && ((pressed = null), letGo());
  const click = (id, act) => ($(id).onclick = act);
  click("undo", () => act(() => game.undo()));
  click("redo", () => act(() => game.redo()));
  click("restart", restart);
  click("hint", hint);
  click("solution-back", () => act(() => game.undo()));
  click("solution-on", () => withSolution(() => act(() => game.redo())));
  click("solution-play", () => (timer && !queue ? halt() : withSolution(playBack)));
  click("solution-best", () => (aside ? backToOwn() : showBest()));
  click("play-edit", () => open("draw", text, title));
  click("play-keep", () => keepBoard(text, title));
  click("play-share", async () => (await copyText(linkTo(text)), toast("The link is copied. It carries the board in its address.")));
  for (const [id, act] of [["shade", shade], ["warn", look]]) {
    $(id).onchange = () => (keep(id, $(id).checked), act());
  }
  onConnection((there) => there && (rate(), shade(), look()));
}

// Puts a board on the table. The one that is there already stays as it was played, until it is solved.
export function load(board, name = "", saved = null) {
  const next = parse(board), same = game && format(next) === text;
  finishQueue();
  halt();
  title = name || (same ? title : "");
  if (same && !game.solved) return;
  text = format(next);
  game = new Game(next);
  helped = saved?.helped ?? false;
  aside = saved?.aside ?? null;
  if (saved) {
    for (const letter of saved.moves ?? "") if (!game.step(letter)) break;
    game.goTo(saved.at);
  }
  dead = ahead = null;
  trouble = game.playable ? "" : "This board cannot be played.";
  $("par").textContent = "–";
  letGo(false);
  shade();
  after();
  rate();
}

function rate() {
  rating.run(async (signal) => {
    const { verdict, pushes, reason, word } = await rateBoard({ board: text }, signal);
    $("par").textContent = pushes ?? "–";
    $("par").title = verdict === "solved" ? `Fewest pushes, by the solver; ${word ?? "not rated"}` : `${verdict} ${reason}`;
    if (verdict === "malformed") trouble = `This board cannot be played: ${reason}.`;
    if (verdict === "unsolvable") trouble = "This board cannot be solved.";
    if (trouble) look();
  }).catch(() => {});
}

const say = (sentence) => ($("play-message").textContent = sentence);
const visible = () => !$("play").hidden;

function onKey(event) {
  const typing = event.target.closest?.("input:not([type=checkbox], [type=range]), textarea, select, dialog");
  if (!visible() || typing || event.altKey) return;
  const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  if (event.target.type === "range" && key.startsWith("Arrow")) return;
  const does = { z: () => game.undo(), Backspace: () => game.undo(), y: () => game.redo() };
  if (event.ctrlKey || event.metaKey) {
    if (key !== "z" && key !== "y") return;
    event.preventDefault();
    act(key === "y" || event.shiftKey ? does.y : does.z);
  } else if (KEYS[key]) {
    event.preventDefault();
    act(() => game.step(KEYS[key]));
  } else if (does[key]) {
    event.preventDefault();
    act(does[key]);
  } else if (key === "r") restart();
  else if (key === "h") hint();
  else if (key === "Escape") letGo();
}

// One thing a person does: whatever was still moving is finished first.
function act(change) {
  finishQueue();
  halt();
  if (!game.playable) return;
  letGo(false);
  change();
  after();
}

function after() {
  hintCells = null;
  draw();
  $("moves").textContent = game.at;
  $("pushes").textContent = game.pushes;
  enable($("undo"), game.at);
  enable($("solution-back"), game.at);
  enable($("redo"), game.at < game.moves.length);
  table.keep("play", { text, title, moves: game.moves, at: game.at, helped, aside });
  hinting.cancel();
  const won = game.playable && game.solved && game.at;
  const record = won && !helped && best.offer([[text, game.played]]);
  if (record === null) toast(FULL);
  const own = best.of(text);
  $("best").textContent = own ? pushesOf(own) : "–";
  $("solution-best").hidden = !own;
  $("solution-best").textContent = aside ? "My game" : "Your best";
  if (won) {
    watching.cancel();
    const feat = `${plural(game.at, "move")} and ${plural(game.pushes, "push", "pushes")}`;
    say(`Solved in ${feat}${record ? ", your best so far" : ""}!`);
  } else look();
}

function draw() {
  view.show(game.board(), {
    dead: $("shade").checked ? dead : null,
    targets: chosen === undefined ? hintCells?.targets : routes.keys(),
    fresh: hintCells?.fresh,
    chosen,
  });
}

// A quiet question after every move: can this still be solved?
function look() {
  if (game.playable && game.solved && game.at) return; // that has been said
  say(trouble);
  watching.run(async (signal) => {
    if (trouble || game.solved || !$("warn").checked || !game.at) return;
    await new Promise((resolve) => setTimeout(resolve, 250));
    signal.throwIfAborted();
    const { verdict } = await solve({ board: format(game.board()) }, signal);
    if (verdict === "unsolvable") say("From here it cannot be solved any more. Undo goes back.");
  }).catch(() => {});
}

async function hint() {
  finishQueue();
  halt();
  const found = await solution(hinting);
  if (!found) return;
  const push = found.search(/[A-Z]/), ahead = new Game(game.board());
  for (const letter of found.slice(0, push)) ahead.step(letter);
  const letter = found[push].toLowerCase(), box = ahead.next(ahead.player, letter), to = ahead.next(box, letter);
  letGo(false);
  hintCells = { fresh: [box], targets: [to] };
  draw();
  const width = game.start.width;
  say(`Hint: push the box in row ${Math.floor(box / width) + 1}, column ${(box % width) + 1} ${WORDS[letter]}.`);
}

// A shortest solution from here, or a sentence that says why there is none.
async function solution(asking) {
  if (!game.playable) return null;
  if (game.solved) return say("It is solved."), null;
  say("Thinking…");
  try {
    const board = format(game.board());
    const found = await asking.run(async (signal) => {
      const short = await solve({ board, mode: "pushes" }, signal);
      return short.verdict === "unknown" ? solve({ board, seconds: 10 }, signal) : short;
    });
    if (!found) return null;
    if (found.solution === null)
      say(trouble || (found.verdict === "unsolvable" ? "From here it cannot be solved any more." : `No solution found: ${found.reason}.`));
    else say("");
    return found.solution;
  } catch (error) {
    say(error.message);
    return null;
  }
}

// Solutions are played like anything that was taken back: by going forward again.
function putAhead(lurd, at) {
  game.goTo(at);
  game.moves = ahead = game.played + lurd;
  helped = true;
}

function showBest() {
  finishQueue();
  halt();
  if (game.moves) aside = { moves: game.moves, at: game.at, helped };
  putAhead(best.of(text), 0);
  playBack();
}

function backToOwn() {
  halt();
  game.goTo(0);
  game.moves = aside.moves;
  game.goTo(aside.at);
  ({ helped } = aside);
  aside = null;
  letGo(false);
  after();
}

async function withSolution(then) {
  finishQueue();
  // What lies ahead may also be one's own moves, taken back.
  if (game.moves !== ahead || game.at === game.moves.length) {
    const found = await solution(hinting);
    if (!found) return;
    putAhead(found, game.at);
  }
  then();
}

function playBack() {
  halt();
  letGo(false);
  $("solution-play").textContent = "Pause";
  const on = () => {
    if (!game.redo()) return halt();
    after();
    timer = setTimeout(on, 1200 / Number($("speed").value) ** 1.4);
  };
  on();
}

function halt() {
  clearTimeout(timer);
  timer = null;
  $("solution-play").textContent = "Play it";
}

// A route is walked so that one can see it; the next thing a person does finishes it at once.
function travel(letters) {
  halt();
  hinting.cancel(); // the answer would be for where one was
  queue = letters;
  if (still.matches) return finishQueue();
  const on = () => {
    game.step(queue[0]);
    queue = queue.slice(1);
    if (!queue) return (timer = null), after();
    draw();
    timer = setTimeout(on, 38);
  };
  on();
}

function finishQueue() {
  if (!queue) return;
  clearTimeout(timer);
  timer = null;
  for (const letter of queue) game.step(letter);
  queue = "";
  after();
}

function restart() {
  finishQueue();
  halt();
  if (aside) backToOwn();
  game.goTo(0);
  // Whoever starts over plays for themselves: the solution that was looked up is not there to be gone through again.
  if (helped) game.moves = "";
  helped = false;
  ahead = null;
  letGo(false);
  after();
}

function take(box) {
  chosen = box;
  routes = game.routes(box);
  hintCells = null;
  if (!routes.size && !game.solved) say("This box cannot be pushed from here.");
  draw();
}

function letGo(redraw = true) {
  chosen = undefined;
  routes = new Map();
  if (redraw) draw();
}

function pushTo(cell) {
  const route = game.route(chosen, routes.get(cell));
  letGo();
  travel(route);
}

function onDown(event) {
  if (!event.isPrimary) return void (pressed = null); // a second finger: this is no move
  if (!game.playable || event.button) return;
  const cell = view.cellAt(event);
  // Of a double click the second half is not about the box that has just been sent there.
  if (cell === sent?.cell && event.timeStamp - sent.when < DOUBLE_CLICK) return;
  finishQueue();
  halt();
  view.canvas.setPointerCapture(event.pointerId);
  pressed = { cell, x: event.clientX, y: event.clientY, touch: event.pointerType === "touch", before: chosen };
  if (cell >= 0 && game.boxes[cell]) take(cell);
}

function onMove(event) {
  if (!pressed) return;
  const cell = view.cellAt(event);
  view.canvas.style.cursor = chosen !== undefined && routes.has(cell) ? "copy" : "";
}

function onUp(event) {
  if (!pressed) return;
  const { cell: from, x, y, touch, before } = pressed, cell = view.cellAt(event);
  pressed = null;
  view.canvas.style.cursor = "";
  const dx = event.clientX - x, dy = event.clientY - y, size = view.canvas.clientWidth / game.start.width;
  const far = Math.hypot(dx, dy) > Math.max(18, size * 0.6);
  // A drag begins on the box: with a box in hand, a swipe elsewhere is still a swipe.
  if (game.boxes[from] && cell !== from && far) {
    if (routes.has(cell)) pushTo(cell);
    else letGo();
  } else if (touch && far) {
    act(() => game.step(Math.abs(dx) > Math.abs(dy) ? (dx < 0 ? "l" : "r") : dy < 0 ? "u" : "d"));
  } else if (cell >= 0 && game.boxes[cell]) {
    if (before === cell) letGo(); // a second click puts the box back down
  } else if (chosen !== undefined && routes.has(cell)) {
    sent = { cell, when: event.timeStamp };
    pushTo(cell);
  } else {
    letGo();
    const path = cell >= 0 ? game.walkTo(cell) : null;
    if (path) travel(path);
  }
}

function shade() {
  if (!$("shade").checked || dead) return draw();
  const of = text;
  shading.run(async (signal) => {
    const found = await deadCells({ board: text }, signal);
    if (of !== text) return;
    dead = found.map(([row, column]) => row * game.start.width + column);
    draw();
  }).catch((error) => say(error.message));
}
