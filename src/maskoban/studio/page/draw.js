// Draw: paint tiles or ?, let the model fill the rest, let the solver say what it thinks.

import { ask, askFile, listen } from "./api.js";
import { FLOOR, GOAL, MASK, NAMES, PLAYER_ON_GOAL, copy, filled, format, has, parse, resized } from "./board.js";
import { $, Newest, button, copyText, download, el, judgementNode, toast } from "./dom.js";
import { linkTo } from "./share.js";
import { keep, recall } from "./store.js";
import { BoardView, cellName, tileIcon } from "./view.js";

const SUGGESTIONS = 6;

let board, view, tile = MASK, cursor, cure = [], past = [], painting = false;
const judging = new Newest(), completing = new Newest(), repairing = new Newest();

export function start({ open, keepBoard, importDialog }) {
  view = new BoardView($("draw-board"), "The drawing. ");
  palette();
  const canvas = view.canvas;
  canvas.onpointerdown = (event) => {
    if (event.button) return;
    canvas.setPointerCapture(event.pointerId);
    remember();
    painting = true;
    paint(view.cellAt(event));
  };
  canvas.onpointermove = (event) => painting && paint(view.cellAt(event));
  canvas.onpointerup = canvas.onpointercancel = () => (painting = false);
  canvas.onkeydown = onKey;
  canvas.onblur = () => ((cursor = undefined), show());
  const click = (id, act) => ($(id).onclick = act);
  click("complete", complete);
  click("repair", repair);
  click("cure", applyCure);
  click("draw-undo", undo);
  click("draw-play", () => open("play", format(board)));
  click("draw-keep", () => keepBoard(format(board)));
  click("hide-all", () => change(filled(board.height, board.width, MASK)));
  click("clear", () => change(filled(board.height, board.width, FLOOR)));
  click("import", importDialog);
  $("resize").onsubmit = (event) => {
    event.preventDefault();
    const { height, width } = event.target.elements;
    change(resized(board, Number(height.value), Number(width.value), MASK));
  };
  $("export").onchange = async ({ target }) => {
    const kind = target.value;
    target.value = "";
    try {
      await exportAs(kind);
    } catch (error) {
      toast(error.message);
    }
  };
  load(recall("draw", null) ?? format(filled(10, 10, MASK)));
}

export function load(text) {
  past = [];
  set(parse(text));
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
  const moves = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -board.width, ArrowDown: board.width };
  if ((event.ctrlKey || event.metaKey) && event.key === "z") return event.preventDefault(), undo();
  if (event.key in moves) {
    const next = cursor === undefined ? board.width + 1 : cursor + moves[event.key];
    if (next >= 0 && next < board.cells.length) cursor = next;
    show();
    view.canvas.setAttribute("aria-label", cellName(board, cursor));
  } else if (event.key === " " && cursor !== undefined) {
    remember();
    paint(cursor);
    view.canvas.setAttribute("aria-label", cellName(board, cursor));
  } else if (event.key >= "1" && event.key <= "8") choose(Number(event.key) - 1);
  else return;
  event.preventDefault();
}

function paint(cell) {
  if (cell < 0 || board.cells[cell] === tile) return;
  const next = copy(board);
  // There is one player: painting it elsewhere moves it.
  if (has.player(tile)) next.cells.forEach((old, i) => has.player(old) && (next.cells[i] = old === PLAYER_ON_GOAL ? GOAL : FLOOR));
  next.cells[cell] = tile;
  set(next);
}

function remember() {
  past.push(format(board));
  if (past.length > 500) past.shift();
}

function change(next) {
  remember();
  set(next);
}

function undo() {
  if (past.length) set(parse(past.pop()));
}

function set(next) {
  board = next;
  cure = [];
  $("cure").hidden = true;
  $("resize").elements.height.value = board.height;
  $("resize").elements.width.value = board.width;
  keep("draw", format(board));
  show();
  judge();
}

function show() {
  view.show(board, { cursor, cure });
  $("draw-undo").disabled = !past.length;
}

const say = (...nodes) => $("draw-verdict").replaceChildren(...nodes);

// The verdict follows the hand, a moment behind it.
function judge() {
  const masks = board.cells.filter((each) => each === MASK).length;
  if (masks) {
    judging.cancel();
    return say(`${masks} cell${masks > 1 ? "s" : ""} to be drawn. Complete fills ${masks > 1 ? "them" : "it"}.`);
  }
  judging.run(async (signal) => {
    await new Promise((resolve) => setTimeout(resolve, 150));
    signal.throwIfAborted();
    say(judgementNode(await ask("rate", { board: format(board) }, signal)));
  }).catch((error) => say(error.message));
}

async function complete() {
  const given = format(board), shelf = $("suggestions");
  if (!given.includes("?")) return toast("Paint some cells with ? first: those are what Complete fills.");
  let cards = [];
  $("complete").disabled = true;
  try {
    await completing.run((signal) =>
      listen("complete", { board: given, count: SUGGESTIONS }, (name, data) => {
        if (name === "start") {
          cards = Array.from({ length: SUGGESTIONS }, (_, i) => suggestion(i, given));
          shelf.replaceChildren(...cards.map((one) => one.node));
        } else if (name === "reveal")
          cards.forEach((one, i) => {
            one.board.cells[data.cells[i]] = data.tiles[i];
            one.view.show(one.board, { fresh: [data.cells[i]] });
          });
        else if (name === "finished") cards.forEach((one, i) => one.finish(data.boards[i]));
        else if (name === "judged") cards[data.number].verdict.replaceChildren(judgementNode(data.judgement));
        else if (name === "error") toast(data.message);
      }, signal),
    );
  } catch (error) {
    say(error.message);
  }
  $("complete").disabled = false;
}

function suggestion(number, given) {
  const canvas = el("canvas"), verdict = el("p", { className: "verdict small" });
  const use = button("Use this", () => change(parse(one.text)));
  use.disabled = true;
  const one = { board: parse(given), view: new BoardView(canvas, `Suggestion ${number + 1}. `), verdict, text: null };
  one.node = el("article", { className: "card" }, canvas, verdict, use);
  one.finish = (text) => {
    one.text = text;
    one.view.show(parse(text));
    use.disabled = false;
    canvas.onclick = use.onclick;
  };
  one.view.show(one.board);
  return one;
}

async function repair() {
  say("Looking for a wall to take away…");
  try {
    const found = await repairing.run((signal) => ask("repair", { board: format(board), walls: 2 }, signal));
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
    const { content } = await ask("convert", { levels: [{ board: text, title: "maskoban" }], to: kind });
    download(content, `board.${kind}`);
  } else if (kind === "png" || kind === "gif") {
    download(await askFile("picture", { board: text, format: kind }), `board.${kind}`);
  } else if (kind === "link") {
    await copyText(linkTo(text));
    toast("The link is copied. It carries the board in its address.");
  }
}
