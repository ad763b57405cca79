// Levels from outside: pasted, chosen or dropped.

import { FORMATS, MAX_BYTES, readLevels } from "./api.js";
import { parse } from "./board.js";
import { $, toast } from "./dom.js";
import { Game } from "./game.js";
import { FULL, best, collection } from "./store.js";

export function start(does) {
  $("formats").textContent = FORMATS;
  const take = (...asked) => bring(asked, does);
  const takeFiles = async (files) => take(...(await Promise.all(Array.from(files, fileContent))));
  $("import-go").onclick = () => take({ content: $("import-text").value });
  $("import-file").onchange = async ({ target }) => {
    if (target.files.length) await takeFiles(target.files);
    target.value = "";
  };
  addEventListener("dragover", (event) => {
    if (![...event.dataTransfer.types].includes("Files")) return;
    event.preventDefault();
    document.body.classList.add("dropping");
  });
  addEventListener("dragleave", (event) => event.relatedTarget ?? document.body.classList.remove("dropping"));
  addEventListener("drop", async (event) => {
    document.body.classList.remove("dropping");
    if (!event.dataTransfer.files.length) return;
    event.preventDefault();
    takeFiles(event.dataTransfer.files);
  });
  addEventListener("paste", (event) => {
    const text = event.clipboardData?.getData("text/plain") ?? "";
    if (!event.target.closest?.("input, textarea") && /[#@$]/.test(text)) take({ content: text });
  });
}

export function dialog() {
  $("import-message").textContent = "";
  $("import-text").value = "";
  $("importing").showModal();
}

async function fileContent(file) {
  if (file.size > MAX_BYTES) return { problem: `${file.name} is too large: at most ${MAX_BYTES / 1000} kB.` };
  try {
    return { name: file.name, content: new Uint8Array(await file.arrayBuffer()) };
  } catch {
    return { problem: `${file.name} cannot be read.` }; // a folder, or gone
  }
}

// The moves, in the letters of the rules, if they solve the board.
function replayed(board, lurd) {
  const game = new Game(parse(board));
  return game.playable && [...lurd].every((letter) => game.step(letter)) && game.solved ? game.played : null;
}

// The levels of one file or text; a sentence is thrown where there are none.
async function read({ problem, name, content }) {
  if (problem || !content?.length) throw new Error(problem ?? `${name ? `${name}: there` : "There"} is nothing to import yet.`);
  try {
    return await readLevels(content);
  } catch (error) {
    throw new Error(name ? `${name}: ${error.message}` : error.message);
  }
}

// One board is put on the table to draw on; several, or one for the collection, are kept.
async function bring(files, { open, go }) {
  const say = (sentence) => ($("importing").open ? ($("import-message").textContent = sentence) : toast(sentence));
  const results = await Promise.allSettled(files.map(read));
  const levels = results.flatMap((each) => each.value ?? []);
  const problems = results.flatMap((each) => each.reason?.message ?? []);
  if (!levels.length) return say(problems.join(" "));
  $("importing").close();
  const solved = levels.flatMap(({ board, solutions }) => solutions.map((lurd) => [board, replayed(board, lurd)]));
  const full = best.offer(solved.filter(([, lurd]) => lurd)) === null;
  if (levels.length === 1 && $("collection").hidden) {
    open("draw", levels[0].board, levels[0].title);
    return toast([full ? FULL : "Imported.", ...problems].join(" "));
  }
  const added = collection.add(levels);
  go("collection");
  const told = `${added} of ${levels.length} boards were new and are in the collection.`;
  toast([full || added === null ? FULL : told, ...problems].join(" "));
}
