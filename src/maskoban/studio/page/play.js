// Play: keys, clicks, drags and swipes become steps; the backend is asked for par, hints and warnings.

import * as api from "./api.js";
import { arrowTo, format, parse } from "./board.js";
import { $, Newest, copyText, enable, plural, shareOut, toast } from "./dom.js";
import { Game } from "./game.js";
import * as pool from "./pool.js";
import { clock, dailyBoard, dateOf, recordWin, score, shareText, stats, streaks } from "./records.js";
import { dailyLink, linkTo } from "./share.js";
import { FULL, best, games, keep, pushesOf, recall, table } from "./store.js";
import { BoardView, cellName } from "./view.js";

// What the table holds before anybody has put a board on it.
const WELCOME = "##########\n###  #####\n#   $  ###\n# # .#  ##\n#  $.@$ ##\n##  #.  ##\n###     ##\n##########";
// Letters by where they are on the keyboard, whatever is printed on them.
const KEYS = {
  ArrowLeft: "l", ArrowUp: "u", ArrowRight: "r", ArrowDown: "d", KeyA: "l", KeyW: "u", KeyD: "r", KeyS: "d",
};
const WORDS = { l: "left", u: "up", r: "right", d: "down" };
const still = matchMedia("(prefers-reduced-motion: reduce)");

const STUCK = "This box cannot be pushed from here.";
const DOUBLE_CLICK = 400; // milliseconds
const MAX_TRAIL = 200; // boards to go back to

let game, text, title, view;
let trail = { list: [], at: -1 }; // the boards that were on the table: { board, title, date }
let par = null, word = null; // of the board, once it is rated
let seconds = 0; // that it was played
let trouble = ""; // what is wrong with the board itself, however it is played
let chosen, routes = new Map(); // the box taken in hand, and where it can go
let pressed = null; // where a pointer went down
let sent = null; // where a click sent a box last, and when
let dead = null;
let ahead = null; // all moves, when those still to come are a solution
let helped = false; // a hint or the solution was shown since the last restart: a win does not count
let aside = null; // the game that waits while one's best is shown
let timer = null, queue = "";
let hintCells = null, explored; // what a hint shows; the cell that keys explore
let spokenAt = 0; // the move that was spoken of last
let won = false; // whether this win has been counted
const watching = new Newest(), hinting = new Newest(), rating = new Newest(), shading = new Newest(), drawing = new Newest();

const visible = () => !$("play").hidden;
const say = (sentence) => ($("play-message").textContent = sentence);
const speak = (sentence) => ($("spoken").textContent = sentence);
const current = () => trail.list[trail.at];

export function start({ open, keepBoard }) {
  view = new BoardView($("play-board"), "The game. ");
  for (const id of ["shade", "warn"]) $(id).checked = recall(id, $(id).checked);
  games.prune();
  trail = table.recall("trail") ?? trail;
  try {
    visit(trail.at);
  } catch {
    trail = { list: [], at: -1 }; // nothing there, or nothing that is a board
    load(WELCOME, "Welcome");
  }
  addEventListener("keydown", onKey);
  const canvas = view.canvas;
  canvas.onpointerdown = onDown;
  canvas.onpointermove = onMove;
  canvas.onpointerup = onUp;
  canvas.onpointercancel = (event) => event.isPrimary && ((pressed = null), letGo());
  canvas.onblur = () => explored !== undefined && ((explored = undefined), draw());
  const click = (id, act) => ($(id).onclick = act);
  click("undo", undo);
  click("redo", redo);
  click("restart", restart);
  click("hint", hint);
  click("next", next);
  click("previous", previous);
  click("daily", () => daily());
  click("won-next", next);
  click("won-replay", () => (restart(), canvas.focus({ preventScroll: true })));
  click("won-share", shareWin);
  click("solution-back", () => act(() => game.undo()));
  click("solution-on", () => withSolution(() => act(() => game.redo())));
  click("solution-play", () => (timer && !queue ? halt() : withSolution(playBack)));
  click("solution-best", () => (aside ? backToOwn() : showBest()));
  click("play-edit", () => open("draw", text, title));
  click("play-keep", () => keepBoard(text, title, par === null ? undefined : { verdict: "solved", word, pushes: par }));
  click("play-share", async () => (await copyText(linkTo(text)), toast("The link is copied. It carries the board in its address.")));
  for (const [id, act] of [["shade", shade], ["warn", look]]) {
    $(id).onchange = () => (keep(id, $(id).checked), act());
  }
  $("difficulty").value = recall("difficulty", "");
  $("difficulty").onchange = () => (keep("difficulty", $("difficulty").value), pool.choose($("difficulty").value), newest());
  pool.start(visible, (board) => view.show(board));
  pool.choose($("difficulty").value);
  setInterval(tick, 1000);
  addEventListener("pagehide", save);
  api.onConnection((there) => there && (rate(), shade(), look(), pool.fill()));
  tellStats();
}

// This part is shown: boards are drawn ahead from now on.
export const shownNow = () => pool.fill();

// Puts a board on the table as it was left. A solved one starts afresh.
export function load(board, name = "", date = "") {
  const next = parse(board), same = game && format(next) === text;
  drawing.cancel();
  finishQueue();
  halt();
  if (same) {
    if (name) current().title = title = name;
    if (date) current().date = date;
    if (!game.solved) return after();
    return restart();
  }
  const entry = { board: format(next), title: name, date };
  trail.list = [...trail.list.slice(0, trail.at + 1), entry].slice(-MAX_TRAIL);
  visit(trail.list.length - 1);
  if (game.playable && game.solved && game.at) restart();
}

// A board of the trail, with the game as it was left.
function visit(place) {
  const entry = trail.list[place], next = parse(entry.board);
  drawing.cancel();
  finishQueue();
  halt();
  trail.at = place;
  table.keep("trail", trail);
  ({ title } = entry);
  text = format(next);
  game = new Game(next);
  const saved = games.of(text) ?? {};
  for (const letter of saved.moves ?? "") if (!game.step(letter)) break;
  game.goTo(saved.at ?? 0);
  game.marks = saved.marks ?? [];
  ({ helped = false, aside = null, seconds = 0 } = saved);
  dead = ahead = par = word = null;
  spokenAt = game.at;
  won = game.solved && game.at > 0; // it was counted when it was won
  trouble = game.playable ? "" : "This board cannot be played.";
  $("par").textContent = "–";
  letGo(false);
  shade();
  after();
  rate();
}

function save() {
  if (game.moves || games.of(text)) games.keep(text, { moves: game.moves, at: game.at, marks: game.marks, helped, aside, seconds });
}

function tick() {
  if (!visible() || document.hidden || !game.at || game.solved || !game.playable) return;
  seconds += 1;
  $("time").textContent = clock(seconds);
}

function previous() {
  if (trail.at > 0) visit(trail.at - 1);
}

const next = () => (trail.at < trail.list.length - 1 ? visit(trail.at + 1) : newest());

// A board of the chosen difficulty. Where none was drawn ahead, one sees it being drawn.
const newest = () => fetchBoard(async (signal) => {
  const found = await pool.next(signal);
  return () => load(found.board, found.title);
});

// The daily board; another date's by its link.
export const daily = (date = dateOf()) => fetchBoard(async (signal) => {
  const found = await dailyBoard(date, signal);
  return () => load(found.board, found.title, date);
});

async function fetchBoard(work) {
  finishQueue();
  halt();
  letGo();
  watching.cancel();
  $("won").hidden = true;
  say("The model draws a board…");
  try {
    const put = await drawing.run(work);
    put?.();
  } catch (error) {
    after();
    say(error.message);
  }
}

function giveUpDrawing() {
  drawing.cancel();
  after();
}

function rate() {
  rating.run(async (signal) => {
    const judgement = await api.rate({ board: text }, signal);
    const { verdict, pushes, reason } = judgement;
    ({ pushes: par, word } = judgement);
    $("par").textContent = pushes ?? "–";
    $("par").title = verdict === "solved" ? `Fewest pushes, by the solver; ${word ?? "not rated"}` : `${verdict} ${reason}`;
    if (verdict === "malformed") trouble = `This board cannot be played: ${reason}.`;
    if (verdict === "unsolvable") trouble = "This board cannot be solved.";
    tellBoard();
    tellWin();
    if (trouble) look();
  }).catch(() => {});
}

function tellBoard() {
  const name = [current().title || "A board", word].filter(Boolean).join(" · ");
  $("board-name").textContent = $("play-message").dataset.name = name;
}

function onKey(event) {
  const typing = event.target.closest?.("input:not([type=checkbox], [type=range]), textarea, select, dialog");
  if (!visible() || typing || event.altKey) return;
  const { code, shiftKey: shift } = event, key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  const move = KEYS[code] ?? KEYS[key], arrow = key.startsWith("Arrow");
  if (event.target.type === "range" && arrow) return;
  const onButton = event.target.closest?.("button, summary, a");
  let does = null;
  if (event.ctrlKey || event.metaKey) does = { z: shift ? redo : undo, y: redo }[key];
  else if (shift && arrow) does = () => explore(event.key);
  else if (move) does = () => act(() => (game.mark(), game.step(move)));
  // On a French keyboard Z is where W is elsewhere, so there the key of W undoes.
  else if (key === "z" || code === "KeyZ") does = shift ? () => act(() => game.undo()) : undo;
  else if (key === "y") does = shift ? () => act(() => game.redo()) : redo;
  else if (key === "Enter" && !onButton) does = explored === undefined ? (won ? next : null) : () => choose(explored);
  else does = { Backspace: undo, r: restart, h: hint, n: next, p: previous, Escape: () => ((explored = undefined), drawing.running ? giveUpDrawing() : letGo()) }[key];
  if (!does) return;
  event.preventDefault();
  does();
}

const undo = () => act(() => game.undoGesture());
const redo = () => act(() => game.redoGesture());

// A cell is told without walking there; Enter then does what a click does.
function explore(key) {
  explored = explored === undefined ? game.player : arrowTo(game.start, explored, key);
  draw();
  speak(cellName(game.board(), explored));
}

// One thing a person does: whatever was still moving is finished first.
function act(change) {
  if (drawing.running) return; // what is shown is the board to come
  finishQueue();
  halt();
  if (!game.playable) return;
  letGo(false);
  const before = game.at;
  change();
  if (game.at === before) speak("Blocked.");
  after();
}

function after() {
  hintCells = null;
  draw();
  speakMoves();
  $("moves").textContent = game.at;
  $("pushes").textContent = game.pushes;
  $("time").textContent = clock(seconds);
  enable($("undo"), game.at);
  enable($("solution-back"), game.at);
  enable($("redo"), game.at < game.moves.length);
  enable($("previous"), trail.at > 0);
  hinting.cancel();
  const solved = Boolean(game.playable && game.solved && game.at), counts = solved && !won && !helped;
  const first = counts && !best.of(text), record = counts && best.offer([[text, game.played]]);
  if (record === null) toast(FULL);
  if (counts) {
    best.offerMoves(text, game.at);
    recordWin({ first, atPar: game.pushes === par, seconds, word, date: current().date, pushes: game.pushes });
    tellStats();
  }
  won = solved;
  save();
  const own = best.of(text);
  $("best").textContent = own ? pushesOf(own) : "–";
  $("solution-best").hidden = !own;
  $("solution-best").textContent = aside ? "My game" : "Your best";
  tellBoard();
  tellWin();
  if (solved) {
    watching.cancel();
    const feat = `${plural(game.at, "move")} and ${plural(game.pushes, "push", "pushes")}`;
    say(`Solved in ${feat}${record ? ", your best so far" : ""}!`);
  } else look();
}

function tellWin() {
  $("won").hidden = !won;
  if (!won) return;
  $("won-score").textContent = score(game.pushes, par);
  const own = best.of(text), ownMoves = best.moves(text);
  const bests = own ? `best ${pushesOf(own)} pushes, ${ownMoves ?? own.length} moves` : "";
  $("won-detail").textContent = [plural(game.at, "move"), clock(seconds), bests].filter(Boolean).join(" · ");
  $("won-helped").hidden = !helped;
}

function tellStats() {
  const { solved, par, seconds, words, days } = stats(), { current, longest } = streaks(days);
  const rows = [
    ["Solved", solved], ["At par", par], ...["easy", "medium", "hard", "expert"].map((each) => [each, words[each] ?? 0]),
    ["Daily streak", current], ["Longest streak", longest], ["Time", clock(seconds)],
  ];
  $("stats").replaceChildren(...rows.flatMap(([name, value]) => {
    const [dt, dd] = [document.createElement("dt"), document.createElement("dd")];
    [dt.textContent, dd.textContent] = [name, value];
    return [dt, dd];
  }));
}

function shareWin() {
  const { date } = current(), link = date ? dailyLink(date) : linkTo(text);
  shareOut(shareText({ title, date, pushes: game.pushes, par, moves: game.at, seconds, link }));
}

// What happened since it was last told, for those who do not see it.
function speakMoves() {
  const from = spokenAt, { at } = game;
  spokenAt = at;
  if (at === from) return;
  const name = (letter) => WORDS[letter.toLowerCase()], place = cellName(game.board(), game.player).replace(/, [^,]*$/, "");
  if (at < from) return speak(`Undone. You are at ${place}.`);
  const made = game.moves.slice(from, at), last = made.at(-1), pushes = pushesOf(made);
  if (!pushes) return speak(made.length > 1 ? `Walked ${made.length} steps to ${place}.` : `${name(last)}.`);
  const box = last === last.toUpperCase() ? game.next(game.player, last.toLowerCase()) : -1;
  const onGoal = box >= 0 && game.goals[box] ? ", onto a goal" : "";
  speak(made.length > 1 ? `${plural(pushes, "push", "pushes")}, ${plural(made.length, "move")}${onGoal}. You are at ${place}.` : `Pushed ${name(last)}${onGoal}.`);
}

function draw() {
  view.show(game.board(), {
    dead: $("shade").checked ? dead : null,
    targets: chosen === undefined ? hintCells?.targets : routes.keys(),
    fresh: hintCells?.fresh,
    cursor: explored,
    chosen,
  });
}

// A quiet question after every move: can this still be solved?
function look() {
  if (won) return; // that has been said
  say(trouble);
  watching.run(async (signal) => {
    if (trouble || game.solved || !$("warn").checked || !game.at) return;
    await new Promise((resolve) => setTimeout(resolve, 250));
    signal.throwIfAborted();
    const { verdict } = await api.solve({ board: format(game.board()) }, signal);
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
  helped = true;
  save();
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
      const short = await api.solve({ board, mode: "pushes" }, signal);
      return short.verdict === "unknown" ? api.solve({ board, seconds: 10 }, signal) : short;
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
  if (game.moves) aside = { moves: game.moves, at: game.at, marks: game.marks, helped };
  putAhead(best.of(text), 0);
  playBack();
}

function backToOwn() {
  halt();
  game.goTo(0);
  game.moves = aside.moves;
  game.marks = aside.marks ?? [];
  game.goTo(aside.at);
  ({ helped } = aside);
  won = game.solved; // counted when it was won
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
  game.mark();
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
  drawing.cancel();
  finishQueue();
  halt();
  if (aside) backToOwn();
  game.goTo(0);
  // Whoever starts over plays for themselves: the solution that was looked up is not there to be gone through again.
  if (helped) game.moves = "";
  helped = won = false;
  seconds = 0;
  ahead = null;
  letGo(false);
  after();
}

function take(box) {
  chosen = box;
  routes = game.routes(box);
  hintCells = null;
  if (!routes.size && !game.solved) say(STUCK);
  else if ($("play-message").textContent === STUCK) say(trouble); // that was another box
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

// What a click on a cell, or Enter on the explored one, does.
function choose(cell, before = chosen) {
  if (!game.playable) return;
  if (cell >= 0 && game.boxes[cell]) {
    if (before === cell) return letGo(); // a second click puts the box back down
    take(cell);
    speak(`Box in hand; ${plural(routes.size, "cell")} to push it to.`);
  } else if (chosen !== undefined && routes.has(cell)) pushTo(cell);
  else {
    letGo();
    const path = cell >= 0 ? game.walkTo(cell) : null;
    if (path) travel(path);
  }
}

function onDown(event) {
  if (!event.isPrimary) return void (pressed = null); // a second finger: this is no move
  if (!game.playable || event.button || drawing.running) return;
  const cell = view.cellAt(event);
  // Of a double click the second half is not about the box that has just been sent there.
  if (cell === sent?.cell && event.timeStamp - sent.when < DOUBLE_CLICK) return;
  finishQueue();
  halt();
  view.canvas.setPointerCapture(event.pointerId);
  pressed = { cell, x: event.clientX, y: event.clientY, touch: event.pointerType === "touch", before: chosen, swiped: false };
  if (cell >= 0 && game.boxes[cell]) take(cell);
}

// A finger that goes on walks on: a step for every cell's width, all of it one gesture.
function swipe(event) {
  const dx = event.clientX - pressed.x, dy = event.clientY - pressed.y, size = view.canvas.clientWidth / game.start.width;
  const across = Math.abs(dx) > Math.abs(dy), far = Math.max(Math.abs(dx), Math.abs(dy));
  if (far <= (pressed.swiped ? size : Math.max(18, size * 0.6))) return;
  const letter = across ? (dx < 0 ? "l" : "r") : dy < 0 ? "u" : "d", again = pressed.swiped;
  Object.assign(pressed, { x: event.clientX, y: event.clientY, swiped: true });
  act(() => (again || game.mark(), game.step(letter)));
}

function onMove(event) {
  if (!pressed) return;
  if (pressed.swiped || (pressed.touch && event.isPrimary && !game.boxes[pressed.cell])) return swipe(event);
  const cell = view.cellAt(event);
  view.canvas.style.cursor = chosen !== undefined && routes.has(cell) ? "copy" : "";
}

function onUp(event) {
  if (!pressed) return;
  const { cell: from, x, y, touch, before, swiped } = pressed, cell = view.cellAt(event);
  view.canvas.style.cursor = "";
  if (swiped) return void (pressed = null);
  const size = view.canvas.clientWidth / game.start.width;
  const far = Math.hypot(event.clientX - x, event.clientY - y) > Math.max(18, size * 0.6);
  // A drag begins on the box: with a box in hand, a swipe elsewhere is still a swipe.
  if (game.boxes[from] && cell !== from && far) {
    if (routes.has(cell)) pushTo(cell);
    else letGo();
  } else if (touch && far) swipe(event);
  else if (cell >= 0 && game.boxes[cell]) {
    if (before === cell) letGo(); // a second click puts the box back down
  } else {
    if (chosen !== undefined && routes.has(cell)) sent = { cell, when: event.timeStamp };
    choose(cell, before);
  }
  pressed = null;
}

function shade() {
  if (!$("shade").checked || dead) return draw();
  const of = text;
  shading.run(async (signal) => {
    const found = await api.deadCells({ board: text }, signal);
    if (of !== text) return;
    dead = found.map(([row, column]) => row * game.start.width + column);
    draw();
  }).catch((error) => say(error.message));
}
