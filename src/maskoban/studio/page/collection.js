// Collection: the boards people keep, in the browser's storage.

import { MAX_BYTES, writeLevels } from "./api.js";
import { parse } from "./board.js";
import { $, button, download, el, enable, onUndoKey, plural, toast } from "./dom.js";
import { FULL, best, collection, onStored, pushesOf } from "./store.js";
import { BoardView } from "./view.js";

const EMPTY = el("p", { className: "empty", textContent: "Nothing kept yet. Keep boards from Watch, Play or Draw." });
const MAX_TITLE = 1000, MAX_COMMENT = 10_000; // what the server takes
const cards = new Map(); // by board
const removed = new Set(); // what puts back each board that was taken out
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
  onUndoKey("collection", () => undo());
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
    if (!collection.rename(board, name.value)) toast(FULL);
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
  removed.add(putBack);
  (next?.querySelector("button:last-child") ?? $("import-here")).focus();
  toast(`${name.value} is removed.`, "Undo", () => undo(putBack));
}

function undo(putBack = [...removed].at(-1)) {
  if (!putBack) return;
  if (!putBack()) return toast(FULL);
  removed.delete(putBack);
  toast("It is back.");
}

// The kept boards as levels, in as many parts as the server takes: mostly one.
function parts() {
  const solved = best.all(), found = [[]];
  let bytes = 0;
  for (const { board, title, author = "", comment = "" } of collection.all()) {
    const level = {
      board,
      title: title.slice(0, MAX_TITLE),
      author: author.slice(0, MAX_TITLE),
      comment: comment.slice(0, MAX_COMMENT),
      solutions: solved[board] ? [solved[board]] : [],
    };
    const size = new Blob([JSON.stringify(level)]).size;
    if (bytes + size > MAX_BYTES && bytes) found.push([]), (bytes = 0);
    found.at(-1).push(level);
    bytes += size;
  }
  return found;
}

async function exportAll() {
  try {
    const all = parts();
    for (const [i, levels] of all.entries()) {
      download(await writeLevels(levels, "sok"), all.length > 1 ? `collection-${i + 1}.sok` : "collection.sok");
    }
  } catch (error) {
    toast(error.message);
  }
}
