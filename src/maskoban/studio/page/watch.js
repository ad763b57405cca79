// Watch: boards appear as the server tells each commit; any moment of the drawing can be looked at again.

import { ask, listen } from "./api.js";
import { MASK, NAMES, arrowTo, copy, format, parse } from "./board.js";
import { $, Newest, button, el, enable, judgementNode, toast } from "./dom.js";
import { keep, recall, session } from "./store.js";
import { BoardView, cellName, tileIcon } from "./view.js";

const drawing = new Newest();
let boards = []; // of the drawing on the table: { view, start, commits, text, cursor }
let told = []; // everything the server said of it, in pairs of name and data
let steps = 0, allSteps = 0; // so far, and when it will be done
let shownStep = 0;
let playing = null;

export function start({ open, keepBoard }) {
  const form = $("watch-form");
  form.temperature.oninput = () => (form.warmth.value = Number(form.temperature.value).toFixed(1));
  const does = { open, keepBoard };
  form.onsubmit = (event) => {
    event.preventDefault();
    generate(form, does);
  };
  $("watch-stop").onclick = () => drawing.cancel();
  $("watch-step").oninput = (event) => (pause(), show(Number(event.target.value)));
  addEventListener("pointerdown", (event) => event.target.closest?.("#watch-boards canvas") ?? hideChances());
  $("watch-play").onclick = () => (playing ? pause() : play());
  $("watch-boards").append(el("p", { className: "empty", textContent: "Press Generate, and see boards appear cell by cell." }));
  // What this window drew last is told again.
  for (const [name, data] of recall("watch", [], session)) hear(name, data, does, false);
  if (boards.length) show(steps);
  stopped();
  boards.filter((one) => one.text !== null && !one.verdict.hasChildNodes()).forEach(judge);
  addEventListener("pagehide", remember); // in the middle of a drawing, perhaps
}

async function generate(form, does) {
  pause();
  hideChances();
  const asked = {
    count: Number(form.count.value),
    temperature: Number(form.temperature.value),
    polish: Number(form.polish.value),
  };
  if (form.seed.value !== "") asked.seed = Number(form.seed.value);
  $("generate").textContent = "Drawing…";
  enable($("generate"), false);
  $("watch-stop").hidden = false;
  $("watch").setAttribute("aria-busy", "true");
  try {
    await drawing.run((signal) => listen("generate", asked, (name, data) => hear(name, data, does), signal));
  } catch (error) {
    toast(error.message);
  }
  remember();
  stopped();
  $("generate").textContent = "Generate";
  enable($("generate"), true);
  if (document.activeElement === $("watch-stop")) $("generate").focus();
  $("watch-stop").hidden = true;
  $("watch").removeAttribute("aria-busy");
}

function hear(name, data, does, live = true) {
  if (name === "start") {
    // Only now: without a server, what was drawn before stays.
    boards = [];
    told = [];
    steps = allSteps = 0;
    $("watch-boards").replaceChildren();
    $("scrubber").hidden = false;
    for (let number = 0; number < data.count; number++) boards.push(card(number, data, does));
    show(0);
  } else if (name === "reveal") {
    boards.forEach((each, i) =>
      each.commits.push({ cell: data.cells[i], tile: data.tiles[i], chances: data.probabilities[i] }),
    );
    const following = live && shownStep === steps && !playing;
    steps = data.step;
    allSteps = data.steps;
    if (following) show(steps);
  } else if (name === "finished") {
    data.boards.forEach((text, i) => {
      boards[i].text = text;
      for (const each of boards[i].buttons) each.disabled = false;
    });
    if (live) show(shownStep);
  } else if (name === "judged") {
    boards[data.number].verdict.replaceChildren(judgementNode(data.judgement));
  } else if (name === "error") {
    return toast(data.message);
  }
  told.push([name, data]);
}

const remember = () => keep("watch", told, session);

// A board that was finished when this window was left, and not yet judged.
async function judge({ number, text }) {
  try {
    const judgement = await ask("rate", { board: text });
    if (boards[number]?.text === text) hear("judged", { number, judgement }); // else something else is drawn by now
  } catch {
    // as little is known of it as before
  }
}

// Boards that were not drawn to the end can be gone on with.
function stopped() {
  for (const one of boards) {
    if (one.text !== null) continue;
    one.verdict.textContent = "Stopped. Edit takes it to Draw, where Complete fills the rest.";
    one.edit.disabled = false;
  }
}

function card(number, { seed, model, board }, { open, keepBoard }) {
  const title = `${model} ${seed}-${number}`;
  const canvas = el("canvas", { tabIndex: 0 });
  const verdict = el("p", { className: "verdict" });
  const one = { number, start: parse(board), commits: [], text: null, verdict, view: new BoardView(canvas, `Drawing ${number + 1}: `) };
  one.edit = button("Edit", () => open("draw", one.text ?? format(boardAt(one, steps)), title));
  one.buttons = [
    button("Play", () => open("play", one.text, title)),
    one.edit,
    button("Keep", () => keepBoard(one.text, title)),
  ];
  for (const each of one.buttons) each.disabled = true;
  canvas.onpointermove = (event) => chances(one, one.view.cellAt(event), event.clientX, event.clientY);
  canvas.onpointerdown = canvas.onpointermove;
  // A finger covers what it points at: what it asked for stays until the next tap.
  canvas.onpointerleave = (event) => event.pointerType !== "touch" && hideChances();
  canvas.onpointercancel = hideChances;
  canvas.onblur = () => (hideChances(), (one.cursor = undefined), draw(one));
  canvas.onkeydown = (event) => inspect(one, event);
  const label = el("p", { className: "soft small", textContent: `seed ${seed}, board ${number}` });
  $("watch-boards").append(el("article", { className: "card" }, canvas, label, verdict, el("div", { className: "buttons" }, ...one.buttons)));
  return one;
}

function boardAt(one, step) {
  const board = copy(one.start);
  for (const { cell, tile } of one.commits.slice(0, step)) board.cells[cell] = tile;
  return board;
}

function draw(one) {
  const done = shownStep >= steps && one.text !== null;
  const fresh = shownStep && !done ? [one.commits[shownStep - 1]?.cell].filter((cell) => cell !== undefined) : [];
  one.view.show(boardAt(one, shownStep), { fresh, cursor: one.cursor });
}

function show(step) {
  shownStep = Math.max(0, Math.min(step, steps));
  // Polish commits cells again, so that there are more steps than cells.
  const cells = boards[0].start.cells.filter((tile) => tile === MASK).length, last = allSteps || cells;
  $("watch-step").max = last;
  $("watch-step").value = shownStep;
  $("watch-at").value = `${last > cells ? "step" : "cell"} ${shownStep} of ${last}`;
  for (const one of boards) draw(one);
}

function play() {
  if (shownStep >= steps) show(0);
  $("watch-play").textContent = "❚❚";
  $("watch-play").setAttribute("aria-label", "Pause");
  playing = setInterval(() => (shownStep >= steps ? pause() : show(shownStep + 1)), 70);
}

function pause() {
  clearInterval(playing);
  playing = null;
  $("watch-play").textContent = "▶";
  $("watch-play").setAttribute("aria-label", "Play the drawing again");
}

function inspect(one, event) {
  const { width } = one.start, next = arrowTo(one.start, one.cursor, event.key);
  if (next === null) return;
  event.preventDefault();
  one.cursor = next;
  draw(one);
  const box = one.view.canvas.getBoundingClientRect(), cell = box.width / width;
  chances(one, one.cursor, box.left + ((one.cursor % width) + 1) * cell, box.top + (Math.floor(one.cursor / width) + 1) * cell);
}

// What the model thought of a cell when it was committed, as of the moment shown.
function chances(one, cell, x, y) {
  const committed = one.commits.slice(0, shownStep).findLastIndex((each) => each.cell === cell);
  if (cell < 0 || committed < 0) return hideChances();
  const { tile, chances: shares } = one.commits[committed];
  const lines = shares.map((share, i) => {
    const fill = el("i");
    fill.style.width = `${100 * share}%`;
    const percent = share >= 0.9995 ? "100 %" : share < 0.0005 ? "0 %" : `${(100 * share).toFixed(1)} %`;
    return el("li", { className: i === tile ? "drawn" : "", title: NAMES[i] }, tileIcon(i, 14), el("span", { className: "bar" }, fill), percent);
  });
  const name = cellName(boardAt(one, shownStep), cell);
  $("chances").replaceChildren(el("h3", { textContent: `${name}: commit ${committed + 1}` }), el("ol", {}, ...lines));
  $("chances").hidden = false;
  const box = $("chances").getBoundingClientRect();
  $("chances").style.left = `${Math.max(8, Math.min(x + 16, innerWidth - box.width - 8))}px`;
  $("chances").style.top = `${y + 16 + box.height > innerHeight ? Math.max(8, y - box.height - 16) : y + 16}px`;
}

function hideChances() {
  $("chances").hidden = true;
}
