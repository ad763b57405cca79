// Draw: paint tiles or ?, let the model fill the rest, let the solver say what it thinks.

import * as api from "./api.js";
import {
  BOX, BOX_ON_GOAL, FLOOR, GOAL, MASK, NAMES, PLAYER, PLAYER_ON_GOAL, area, arrowTo, copy, cut, enclosed, filled, format, has, line, mirrored,
  padded, parse, resized, rotated,
} from "./board.js";
import { $, Newest, button, copyText, download, el, enable, judgementNode, onUndoKey, plural, toast } from "./dom.js";
import { linkTo } from "./share.js";
import { best, table } from "./store.js";
import { BoardView, cellName, tileIcon } from "./view.js";

const SUGGESTIONS = 6;

let board, view, tile = MASK, cursor, cure = [], past = [], future = [];
let filling = false; // the next cell is the seed of an area
let named = { text: "", title: "" }; // the board that came in last, and its title
let stroke = null; // of a pointer held down: the board before it, and the cell it came to last
const judging = new Newest(), completing = new Newest(), repairing = new Newest();

export function start({ open, keepBoard, importDialog }) {
  view = new BoardView($("draw-board"), "The drawing. ");
  palette();
  const canvas = view.canvas;
  canvas.onpointerdown = (event) => {
    if (!event.isPrimary) return giveUp();
    if (event.button && event.button !== 2) return;
    const cell = view.cellAt(event);
    if (filling && !event.button) return cell >= 0 && fill(cell);
    canvas.setPointerCapture(event.pointerId);
    stroke = { before: board, last: -1, tile: event.button ? FLOOR : tile };
    onStroke(event);
  };
  canvas.oncontextmenu = (event) => event.preventDefault(); // the right button erases
  canvas.onpointermove = (event) => event.isPrimary && stroke && onStroke(event);
  canvas.onpointerup = canvas.onpointercancel = (event) => event.isPrimary && (stroke = null);
  canvas.onkeydown = onKey;
  onUndoKey("draw", undo, redo);
  canvas.onblur = () => ((cursor = undefined), show());
  const click = (id, act) => ($(id).onclick = act);
  click("complete", complete);
  click("repair", repair);
  click("cure", applyCure);
  click("complete-stop", () => completing.cancel());
  click("draw-undo", undo);
  click("draw-redo", redo);
  click("fill", () => setFilling(!filling));
  click("rotate", () => change(rotated(board)));
  click("mirror", () => change(mirrored(board)));
  click("draw-play", () => open("play", format(board), title()));
  click("draw-keep", () => keepBoard(format(board), title()));
  click("hide-all", () => change(filled(board.height, board.width, MASK)));
  click("clear", () => change(filled(board.height, board.width, FLOOR)));
  click("import", importDialog);
  $("resize").onsubmit = (event) => {
    event.preventDefault();
    const { height, width } = event.target.elements;
    change(resized(board, Number(height.value), Number(width.value), MASK));
  };
  $("export").onsubmit = async (event) => {
    event.preventDefault();
    try {
      await exportAs(event.target.elements.kind.value);
    } catch (error) {
      toast(error.message);
    }
  };
  api.onConnection((there) => there && judge());
  api.model().then(({ height, width, sizes }) => {
    $("draw-limits").textContent = sizes
      ? `Boards of up to ${sizes.most} rows and ${sizes.most} columns can be completed.`
      : `The model completes boards of up to ${height} rows and ${width} columns. A smaller one is drawn within walls.`;
  }, () => {});
  try {
    set(parse(table.recall("draw")));
  } catch {
    set(filled(10, 10, MASK)); // nothing there, or nothing that is a board
  }
}

// The title the board came in with, as long as it is that board.
const title = () => (format(board) === named.text ? named.title : "");

// A board from elsewhere. What was drawn is an Undo away; suggestions for it are of no more use.
export function load(text, title = "") {
  completing.cancel();
  shelve([]);
  const next = parse(text);
  named = { text: format(next), title };
  if (format(board) !== named.text) change(next);
}

function palette() {
  const buttons = NAMES.map((name, i) => {
    const one = button("", () => choose(i), `${name} (${i + 1})`);
    one.append(tileIcon(i), name === "to be drawn" ? "?" : name);
    one.setAttribute("role", "radio");
    one.setAttribute("aria-label", name);
    one.dataset.tile = i;
    return one;
  });
  $("palette").append(...buttons);
  $("palette").onkeydown = (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    choose((tile + step + NAMES.length) % NAMES.length);
    $("palette").children[tile].focus();
  };
  choose(MASK);
}

function choose(which) {
  tile = which;
  for (const [i, one] of [...$("palette").children].entries()) {
    one.setAttribute("aria-checked", String(i === tile));
    one.tabIndex = i === tile ? 0 : -1;
  }
}

function onKey(event) {
  const next = arrowTo(board, cursor, event.key);
  if (event.ctrlKey || event.metaKey) return;
  if (next !== null) {
    cursor = next;
    show();
    view.canvas.setAttribute("aria-label", cellName(board, cursor));
  } else if ([" ", "Delete", "Backspace"].includes(event.key) && cursor !== undefined) {
    if (filling && event.key === " ") fill(cursor);
    else paint([cursor], board, event.key === " " ? tile : FLOOR);
    view.canvas.setAttribute("aria-label", cellName(board, cursor));
  } else if (event.key.toLowerCase() === "f") setFilling(!filling);
  else if (event.key >= "1" && event.key <= "8") choose(Number(event.key) - 1);
  else return;
  event.preventDefault();
}

function onStroke(event) {
  const heard = event.getCoalescedEvents?.() ?? [];
  for (const each of heard.length ? heard : [event]) {
    const cell = view.cellAt(each);
    if (cell >= 0) paint(stroke.last < 0 ? [cell] : line(board, stroke.last, cell), stroke.before, stroke.tile);
    stroke.last = cell;
  }
}

// A second finger has come: what the first one painted was not meant.
function giveUp() {
  if (stroke && board !== stroke.before) undo(), (future = []), show();
  stroke = null;
}

// What painting a tile on another makes: a box or the player painted on a goal stands on it.
const onto = (tile, old) => (tile === BOX && has.goal(old) ? BOX_ON_GOAL : tile === PLAYER && has.goal(old) ? PLAYER_ON_GOAL : tile);

// Paints cells of one stroke, which can be undone as a whole, back to the board before it.
function paint(cells, before, ink = tile) {
  if (cells.every((cell) => board.cells[cell] === onto(ink, board.cells[cell]))) return;
  // There is one player: painting it elsewhere moves it, and what it is dragged over stays.
  const next = copy(has.player(ink) ? before : board);
  if (has.player(ink)) {
    next.cells.forEach((old, i) => has.player(old) && (next.cells[i] = old === PLAYER_ON_GOAL ? GOAL : FLOOR));
    next.cells[cells.at(-1)] = onto(ink, next.cells[cells.at(-1)]);
  } else for (const cell of cells) next.cells[cell] = onto(ink, before.cells[cell]);
  if (past.at(-1) !== before) remember(before);
  set(next);
}

function setFilling(now) {
  filling = now;
  $("fill").setAttribute("aria-pressed", String(now));
}

// Fills the area of one tile that a cell belongs to. A player is one cell, so it is painted there alone.
function fill(cell) {
  setFilling(false);
  paint(has.player(tile) ? [cell] : [...area(board, cell)], board);
}

function remember(before) {
  past.push(before);
  future = [];
  if (past.length > 500) past.shift();
}

function change(next) {
  remember(board);
  set(next);
}

function undo() {
  stroke = null;
  if (!past.length) return;
  future.push(board);
  set(past.pop());
}

function redo() {
  stroke = null;
  if (!future.length) return;
  past.push(board);
  set(future.pop());
}

function set(next) {
  if (next.height !== board?.height || next.width !== board.width) cursor = undefined;
  board = next;
  repairing.cancel();
  cure = [];
  $("cure").hidden = true;
  $("resize").elements.height.value = board.height;
  $("resize").elements.width.value = board.width;
  table.keep("draw", format(board));
  show();
  judge();
}

function show() {
  view.show(board, { cursor, cure });
  enable($("draw-undo"), past.length);
  enable($("draw-redo"), future.length);
}

const say = (...nodes) => $("draw-verdict").replaceChildren(...nodes);

// The verdict follows the hand, a moment behind it.
function judge() {
  const masks = board.cells.filter((each) => each === MASK).length;
  if (masks) {
    judging.cancel();
    return say(`${plural(masks, "cell")} to be drawn. Complete fills ${masks > 1 ? "them" : "it"}.`);
  }
  say("Judging…");
  judging.run(async (signal) => {
    await new Promise((resolve) => setTimeout(resolve, 150));
    signal.throwIfAborted();
    say(judgementNode(await api.rate({ board: format(board) }, signal)));
  }).catch((error) => say(error.message));
}

function shelve(nodes) {
  $("suggestions").replaceChildren(...nodes);
  $("completions").hidden = !nodes.length;
}

// Completions appear under the drawing while they are drawn. A small board is drawn within walls, and cut out again.
async function complete() {
  const given = board;
  if (!given.cells.includes(MASK)) return toast("Paint some cells with ? first: those are what Complete fills.");
  let cards = [], done = 0, all = 1;
  enable($("complete"), false);
  $("complete").hidden = true;
  $("complete-stop").hidden = false;
  if (document.activeElement === document.body || document.activeElement === $("complete")) $("complete-stop").focus();
  try {
    const finished = await completing.run(async (signal) => {
      const { height, width, sizes } = await api.model(signal);
      const placed = sizes ? enclosed(given, sizes) : padded(given, height, width);
      const limits = sizes ? [sizes.most, sizes.most] : [height, width];
      if (!placed) throw new Error(`The model completes boards of up to ${limits.join(" rows and ")} columns with a wall all around.`);
      const { top, left } = placed, back = (whole) => cut(whole, top, left, given.height, given.width);
      for await (const data of api.complete({ board: format(placed.board), count: SUGGESTIONS }, signal)) {
        if (data.type === "start") {
          all = data.evaluations;
          cards = Array.from({ length: SUGGESTIONS }, (_, i) => suggestion(i, copy(placed.board), back));
          shelve(cards.map((one) => one.node));
          $("complete-progress").hidden = false;
          $("completions").scrollIntoView({ block: "nearest" });
        } else if (data.type === "commit") {
          const fresh = new Map();
          data.numbers.forEach((number, i) => {
            cards[number].whole.cells[data.cells[i]] = data.tiles[i];
            fresh.set(number, data.cells[i]);
          });
          for (const number of fresh.keys()) cards[number].show();
          $("complete-progress").value = Math.min(1, (done += 1) / all);
        } else if (data.type === "judged") await cards[data.number].finish(data, signal);
      }
      return true;
    });
    if (!finished) cards.filter((one) => one.text === null).forEach((one) => one.node.remove());
  } catch (error) {
    cards.filter((one) => one.text === null).forEach((one) => one.node.remove()); // half-drawn boards are no suggestions
    say(error.message);
  }
  $("completions").hidden = !$("suggestions").children.length;
  $("complete-progress").value = 0;
  $("complete-progress").hidden = true;
  const focused = document.activeElement === $("complete-stop");
  $("complete-stop").hidden = true;
  $("complete").hidden = false;
  enable($("complete"), true);
  if (focused) $("complete").focus();
}

function suggestion(number, whole, back) {
  const canvas = el("canvas"), verdict = el("p", { className: "verdict small" });
  const use = button("Use this", () => change(parse(one.text)));
  use.disabled = true;
  const one = { whole, view: new BoardView(canvas, `Completion ${number + 1}. `), text: null };
  one.node = el("article", { className: "card" }, canvas, use, verdict);
  one.show = () => one.view.show(back(one.whole));
  one.finish = async ({ board: found, judgement }, signal) => {
    const small = back(parse(found));
    one.view.show(small);
    // A board that was cut out is judged as it is shown.
    verdict.replaceChildren(judgementNode(small.cells.length === one.whole.cells.length ? judgement : await api.rate({ board: format(small) }, signal)));
    one.text = format(small);
    use.disabled = false;
    canvas.onclick = use.onclick;
  };
  one.show();
  return one;
}

async function repair() {
  judging.cancel();
  say("Looking for a wall to take away…");
  try {
    const found = await repairing.run((signal) => api.repair({ board: format(board) }, signal));
    if (!found) return;
    if (found.verdict === "repaired") {
      cure = found.walls[0].map(([row, column]) => row * board.width + column);
      $("cure").hidden = false;
      $("cure").textContent = cure.length > 1 ? "Take them away" : "Take it away";
      say(`Without the outlined wall${cure.length > 1 ? "s" : ""} it can be solved.`);
      show();
    } else {
      const sentences = {
        solvable: "Nothing to repair: it can be solved.",
        unrepaired: "No one or two walls would help.",
        malformed: `No wall can help: ${found.reason}.`,
      };
      say(sentences[found.verdict] ?? `Not found: ${found.reason}.`);
    }
  } catch (error) {
    say(error.message);
  }
}

function applyCure() {
  const next = copy(board);
  for (const cell of cure) next.cells[cell] = FLOOR;
  change(next);
}

async function exportAs(kind) {
  const text = format(board);
  if (kind === "xsb" || kind === "sok") {
    const level = { board: text, title: title() || "maskoban", solutions: [best.of(text)].filter(Boolean) };
    const content = await api.writeLevels([level], kind);
    download(content, `board.${kind}`);
  } else if (kind === "png" || kind === "gif") {
    download(await api.picture({ board: text, format: kind }), `board.${kind}`);
  } else if (kind === "link") {
    await copyText(linkTo(text));
    toast("The link is copied. It carries the board in its address.");
  }
}
