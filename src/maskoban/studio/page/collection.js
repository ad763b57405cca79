// Collection: the boards people keep, in the browser's storage.

import { ask } from "./api.js";
import { parse } from "./board.js";
import { $, button, download, el, enable, plural, toast } from "./dom.js";
import { best, collection, onStored, pushesOf } from "./store.js";
import { BoardView } from "./view.js";

const EMPTY = el("p", { className: "empty", textContent: "Nothing kept yet. Keep boards from Watch, Play or Draw." });
const cards = new Map(); // by board
let open;

// Of a thousand boards only those on the screen are worth drawing.
const seen = new IntersectionObserver((entries) => {
  for (const { target, isIntersecting } of entries) {
    if (!isIntersecting) continue;
    seen.unobserve(target);
    const one = cards.get(target.dataset.board);
    one?.view.show(parse(one.board));
  }
});

export function start(does) {
  ({ open } = does);
  $("import-here").onclick = does.importDialog;
  $("export-all").onclick = exportAll;
  onStored(show);
  show();
}

// Cards that are there already stay: what has the focus keeps it, and a thousand boards are not drawn again for one.
function show() {
  const boards = collection.all(), solved = best.all(), kept = new Set(boards.map((each) => each.board)), shelf = $("kept-boards");
  for (const [board, { node }] of cards) if (!kept.has(board)) node.remove(), cards.delete(board);
  boards.forEach((each, place) => {
    if (!cards.has(each.board)) {
      cards.set(each.board, card(each.board));
      shelf.insertBefore(cards.get(each.board).node, shelf.children[place] ?? null);
    }
    cards.get(each.board).tell(each.title, solved[each.board]);
  });
  boards.length ? EMPTY.remove() : shelf.append(EMPTY);
  $("kept").textContent = boards.length || "";
  enable($("export-all"), boards.length);
}

function card(board) {
  const play = (title) => open("play", board, title);
  const canvas = el("canvas", { onclick: () => play(name.value) });
  const name = el("input", { maxLength: 200, onchange: () => rename() });
  name.setAttribute("aria-label", "Title");
  const told = el("p", { className: "soft small" });
  const take = button("Remove", () => remove(board));
  const buttons = el("div", { className: "buttons" },
    button("Play", () => play(name.value)),
    button("Edit", () => open("draw", board, name.value)),
    take);
  const one = { board, take, name, view: new BoardView(canvas) };
  function rename() {
    name.value = name.value.trim() || "Board";
    collection.rename(board, name.value);
    one.view.name(`${name.value}. `);
  }
  one.tell = (title, solution) => {
    if (name !== document.activeElement) name.value = title;
    one.view.name(`${title}. `);
    told.textContent = solution ? `solved by you in ${plural(pushesOf(solution), "push", "pushes")}` : "not solved yet";
  };
  one.node = el("article", { className: "card" }, canvas, name, told, buttons);
  canvas.dataset.board = board;
  seen.observe(canvas);
  return one;
}

function remove(board) {
  const { node, name } = cards.get(board);
  const next = node.nextElementSibling ?? node.previousElementSibling;
  const putBack = collection.remove(board);
  (next?.querySelector("button:last-child") ?? $("import-here")).focus();
  toast(`${name.value} is removed.`, "Undo", putBack);
}

async function exportAll() {
  try {
    const solved = best.all();
    const levels = collection.all().map(({ board, title }) => ({ board, title, solutions: solved[board] ? [solved[board]] : [] }));
    download((await ask("convert", { levels, to: "sok" })).content, "collection.sok");
  } catch (error) {
    toast(error.message);
  }
}
