// Collection: the boards people keep, in the browser's storage, a page of them at a time.

import { MAX_BYTES, rate, solve, writeLevels } from "./api.js";
import { parse } from "./board.js";
import { $, Newest, button, download, el, enable, judgementNode, onUndoKey, plural, toast } from "./dom.js";
import { FULL, best, collection, games, keep, onStored, pushesOf, recall } from "./store.js";
import { BoardView, drawBoard } from "./view.js";

const PAGE = 24; // boards on a page
const MAX_TITLE = 1000, MAX_COMMENT = 10_000; // what a level may have
const MAX_PRINTED = 60;
const DIFFICULTIES = ["easy", "medium", "hard", "expert"];

const cards = new Map(); // by board, those of this page
const removed = new Set(); // what puts back each board that was taken out
const judging = new Newest();
let open, page = 0;

export function start(does) {
  ({ open } = does);
  $("import-here").onclick = does.importDialog;
  $("export-all").onclick = exportAll;
  $("print").onclick = printSheet;
  addEventListener("afterprint", () => $("sheet").replaceChildren());
  $("page-back").onclick = () => turn(-1);
  $("page-on").onclick = () => turn(1);
  const form = $("finding");
  for (const name of ["filter", "sort"]) form[name].value = recall(`finding.${name}`, form[name].value) || form[name].value;
  form.onsubmit = (event) => event.preventDefault();
  form.oninput = () => {
    for (const name of ["filter", "sort"]) keep(`finding.${name}`, form[name].value);
    page = 0;
    show();
  };
  onUndoKey("collection", () => undo());
  onStored(() => (show(), $("collection").hidden || judgeAll()));
  show();
}

export function shownNow() {
  show();
  judgeAll();
}

function turn(by) {
  page += by;
  show();
  scrollTo({ top: 0 });
}

const SORTS = {
  oldest: null,
  newest: (a, b) => (b.added ?? 0) - (a.added ?? 0),
  title: (a, b) => a.title.localeCompare(b.title, "en", { numeric: true }),
  pushes: (a, b) => (a.judgement?.pushes ?? Infinity) - (b.judgement?.pushes ?? Infinity) || 0,
  size: (a, b) => a.board.length - b.board.length,
};

// The boards that are asked for, in the order that is asked for.
function found() {
  const { search, filter, sort } = $("finding"), words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
  const solved = best.all(), wanted = filter.value;
  const passes = {
    won: ({ board }) => solved[board],
    open: ({ board }) => !solved[board],
    begun: ({ board }) => !solved[board] && games.of(board)?.at > 0,
    unsolvable: ({ judgement }) => judgement?.verdict === "unsolvable",
    other: ({ judgement }) => !judgement?.word && judgement?.verdict !== "unsolvable",
  }[wanted] ?? (({ judgement }) => judgement?.word === wanted);
  const has = ({ title, author = "" }) => words.every((word) => `${title} ${author}`.toLowerCase().includes(word));
  const boards = collection.all().filter((each) => has(each) && (!wanted || passes(each)));
  return SORTS[sort.value] ? boards.sort(SORTS[sort.value]) : boards;
}

// Cards that are there already stay: what has the focus keeps it.
function show() {
  const boards = found(), all = collection.all().length, solved = best.all(), shelf = $("kept-boards");
  const pages = Math.max(1, Math.ceil(boards.length / PAGE));
  page = Math.max(0, Math.min(page, pages - 1));
  const shown = boards.slice(page * PAGE, (page + 1) * PAGE), kept = new Set(shown.map((each) => each.board));
  for (const [board, { node }] of cards) if (!kept.has(board)) node.remove(), cards.delete(board);
  shown.forEach((each, place) => {
    if (!cards.has(each.board)) cards.set(each.board, card(each.board));
    const { node, tell } = cards.get(each.board);
    if (shelf.children[place] !== node) shelf.insertBefore(node, shelf.children[place] ?? null);
    tell(each, solved[each.board]);
  });
  shelf.querySelector(".empty")?.remove();
  if (!shown.length) shelf.append(el("p", { className: "empty", textContent: all ? "No board is like that." : "Nothing kept yet. Keep boards from Watch, Play or Draw." }));
  $("kept").textContent = all || "";
  $("finding").hidden = !all;
  $("pager").hidden = pages === 1;
  $("page-at").textContent = `Page ${page + 1} of ${pages}`;
  enable($("page-back"), page > 0);
  enable($("page-on"), page < pages - 1);
  enable($("export-all"), all);
  enable($("print"), boards.length);
  const won = Object.keys(solved).length ? collection.all().filter((each) => solved[each.board]).length : 0;
  $("collection-note").textContent = all ? `${plural(boards.length, "board")}${boards.length < all ? ` of ${all.toLocaleString("en")}` : ""}; solved by you: ${won.toLocaleString("en")}.` : "";
}

function card(board) {
  const play = () => open("play", board, name.value);
  const canvas = el("canvas", { onclick: play });
  const name = el("input", { maxLength: 200, onchange: () => rename() });
  name.setAttribute("aria-label", "Title");
  const verdict = el("p", { className: "verdict" }), told = el("p", { className: "soft small" });
  const buttons = el("div", { className: "buttons" },
    button("Play", play),
    button("Edit", () => open("draw", board, name.value)),
    button("Remove", () => remove(board)));
  const one = { board, name, view: new BoardView(canvas) };
  function rename() {
    name.value = name.value.trim() || "Board";
    if (!collection.rename(board, name.value)) toast(FULL);
    one.view.name(`${name.value}. `);
  }
  one.tell = ({ title, judgement }, solution) => {
    if (name !== document.activeElement) name.value = title;
    one.view.name(`${title}. `);
    verdict.replaceChildren(judgement ? judgementNode(judgement) : "Not rated yet.");
    const begun = games.of(board)?.at;
    told.textContent = solution ? `solved by you in ${plural(pushesOf(solution), "push", "pushes")}`
      : begun ? `begun, ${plural(begun, "move")}` : "not solved by you yet";
  };
  one.node = el("article", { className: "card" }, canvas, name, verdict, told, buttons);
  one.view.show(parse(board));
  return one;
}

// Boards without a verdict get one while the collection is looked at; it is stored with them.
function judgeAll() {
  judging.run(async (signal) => {
    const waiting = collection.all().filter((each) => !each.judgement).map((each) => each.board);
    waiting.sort((a, b) => cards.has(b) - cards.has(a)); // those in sight first
    let judged = new Map(), told = performance.now();
    const store = () => {
      if (judged.size && !collection.judge(judged)) throw new Error(FULL);
      [judged, told] = [new Map(), performance.now()];
      show();
    };
    for (const board of waiting) {
      if ($("collection").hidden) break;
      const { verdict, reason, word, pushes, effort } = await rate({ board }, signal);
      judged.set(board, { verdict, reason, word, pushes, effort });
      if (performance.now() - told > 500) store();
    }
    store();
  }).catch(() => {}); // without a backend they stay as they are
}

function remove(board) {
  const { node, name } = cards.get(board), others = [...$("kept-boards").children], place = others.indexOf(node);
  const putBack = collection.remove(board);
  removed.add(putBack);
  const next = $("kept-boards").children[place] ?? $("kept-boards").children[place - 1];
  (next?.querySelector("button:last-child") ?? $("import-here")).focus();
  toast(`${name.value} is removed.`, "Undo", () => undo(putBack));
}

function undo(putBack = [...removed].at(-1)) {
  if (!putBack) return;
  if (!putBack()) return toast(FULL);
  removed.delete(putBack);
  toast("It is back.");
}

// The kept boards as levels, in as many parts as the backend takes: mostly one.
function parts() {
  const solved = best.all(), made = [[]];
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
    if (bytes + size > MAX_BYTES && bytes) made.push([]), (bytes = 0);
    made.at(-1).push(level);
    bytes += size;
  }
  return made;
}

async function exportAll() {
  try {
    const all = parts();
    for (const [i, levels] of all.entries())
      download(await writeLevels(levels, "sok"), all.length > 1 ? `collection-${i + 1}.sok` : "collection.sok");
  } catch (error) {
    toast(error.message);
  }
}

// The boards that are shown, for paper: pictures first, solutions on the last page.
async function printSheet() {
  const boards = found().slice(0, MAX_PRINTED), own = best.all();
  toast(boards.length === MAX_PRINTED ? `Preparing the first ${MAX_PRINTED} boards…` : "Preparing the sheet…");
  try {
    const solutions = [];
    for (const { board } of boards) solutions.push(own[board] ?? (await solve({ board, mode: "pushes" })).solution);
    const figures = await Promise.all(boards.map(async ({ board, title, judgement }, i) => {
      const facts = [`${i + 1}. ${title}`, judgement?.word, judgement?.pushes && `par ${judgement.pushes}`].filter(Boolean);
      return el("figure", {}, await drawBoard(parse(board), 40), el("figcaption", { textContent: facts.join(", ") }));
    }));
    const lines = solutions.map((lurd, i) => el("p", { textContent: `${i + 1}. ${lurd ?? "no solution known"}` }));
    $("sheet").replaceChildren(el("div", { className: "boards" }, ...figures),
      el("div", { className: "solutions" }, el("h2", { textContent: "Solutions" }), ...lines));
    $("toast").classList.remove("shown");
    print();
  } catch (error) {
    toast(error.message);
  }
}
