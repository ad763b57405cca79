// Collection: the boards people keep, in the browser's storage.

import { ask } from "./api.js";
import { parse } from "./board.js";
import { $, button, download, el, toast } from "./dom.js";
import { best, collection } from "./store.js";
import { BoardView } from "./view.js";

export function start({ open, importDialog }) {
  $("import-here").onclick = importDialog;
  $("export-all").onclick = exportAll;
  collection.onChange(() => show(open));
  show(open);
}

function show(open) {
  const boards = collection.all();
  $("kept").textContent = boards.length || "";
  $("export-all").disabled = !boards.length;
  const empty = el("p", { className: "empty", textContent: "Nothing kept yet. Keep boards from Watch, Play or Draw." });
  $("kept-boards").replaceChildren(...(boards.length ? boards.map((each) => card(each, open)) : [empty]));
}

function card({ board, title }, open) {
  const canvas = el("canvas", { onclick: () => open("play", board) });
  const name = el("input", { value: title, maxLength: 200, onchange: () => collection.rename(board, name.value.trim() || "Board") });
  name.setAttribute("aria-label", "Title");
  const own = best.of(board);
  const told = own ? `solved by you in ${own.replace(/[a-z]/g, "").length} pushes` : "not solved yet";
  const buttons = el("div", { className: "buttons" },
    button("Play", () => open("play", board)),
    button("Edit", () => open("draw", board)),
    button("Remove", () => (collection.remove(board), toast(`${title} is removed.`))));
  new BoardView(canvas, `${title}. `).show(parse(board));
  return el("article", { className: "card" }, canvas, name, el("p", { className: "soft small", textContent: told }), buttons);
}

async function exportAll() {
  try {
    const levels = collection.all().map(({ board, title }) => ({ board, title, solutions: best.of(board) ? [best.of(board)] : [] }));
    download((await ask("convert", { levels, to: "sok" })).content, "collection.sok");
  } catch (error) {
    toast(error.message);
  }
}
