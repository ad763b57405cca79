// Watch: boards appear while they are sampled; every moment of it can be looked at again.

import { generate as sample, model } from "./api.js";
import { NAMES, arrowTo, copy, format, parse } from "./board.js";
import { $, Newest, button, el, enable, judgementNode, plural, toast } from "./dom.js";
import { keep, recall, session } from "./store.js";
import { BoardView, cellName, tileIcon } from "./view.js";

const LONG_PRESS = 350; // milliseconds

const sampling = new Newest();
let does; // what other parts of the page do
let cards = []; // a card a board that is wanted; with a filter, a card may show several boards one after the other
let byNumber = new Map(); // the cards by the number of the board they show
let events = []; // everything that was heard
let step = 0, shown = 0; // commits so far, and the one that is shown
let evaluations = 0; // of one attempt
let playing = null;
let first = null; // what model() says, once it is loaded

export function start(parts) {
  does = parts;
  const form = $("watch-form");
  $("watch-settings").open = !matchMedia("(max-width: 36rem)").matches; // on a phone the boards come first
  for (const field of [form.temperature, form.sampler, form.sweeps, form.rows, form.columns, form.boxes]) field.oninput = () => note(form);
  form.onsubmit = (event) => {
    event.preventDefault();
    generate(form);
  };
  $("watch-stop").onclick = () => sampling.cancel();
  $("watch-step").oninput = (event) => (pause(), show(Number(event.target.value)));
  $("watch-play").onclick = () => (playing ? pause() : play());
  addEventListener("pointerdown", (event) => event.target.closest?.("#watch-boards canvas") ?? hideChances());
  addEventListener("keydown", (event) => event.key === "Escape" && hideChances());
  // What this window sampled last is shown again.
  for (const event of recall("watch", [], session)) hear(event, false);
  if (cards.length) show(step);
  stopped();
  addEventListener("pagehide", remember); // perhaps while sampling
  model().then((found) => {
    first = found;
    for (const field of [form.rows, form.columns, form.boxes]) field.parentElement.hidden = !first.sizes;
    note(form);
  }, () => {});
}

// The first look at this part shows boards being drawn, not an empty shelf.
export function shownNow() {
  if (recall("watch", null, session) === null && !cards.length && !sampling.running) generate($("watch-form"));
}

// The size and the number of boxes of a request, where they are not those of the first model. The fields appear when it is loaded.
function wishes(form) {
  const wished = {}, size = `${form.rows.value}x${form.columns.value}`;
  if (!first?.sizes) return wished;
  if (size !== `${first.height}x${first.width}`) wished.size = size;
  if (form.boxes.value !== "") wished.boxes = Number(form.boxes.value);
  return wished;
}

// What the sampler that is chosen costs.
async function note(form) {
  form.warmth.value = Number(form.temperature.value).toFixed(1);
  const facts = (await model())?.samplers.find((each) => each.name === form.sampler.value);
  const changed = Number(form.temperature.value) !== 1 || form.sweeps.value !== "";
  let sentence = "";
  const { size, boxes } = wishes(form);
  if (size || (boxes && boxes !== 4)) sentence = "The model any draws boards of this kind. It draws a difficulty too, instead of choosing from finished boards.";
  else if (changed) sentence = "With these settings nobody has measured how many boards are solvable.";
  else if (facts?.solvable) {
    const attempts = facts.config.critic ? `about ${facts.attempts.toFixed(1)} attempts and ` : "";
    const plainest = (await model()).samplers.find((each) => each.name === "plain")?.evaluations;
    const ratio = facts.evaluations / plainest, cost = facts.name === "plain" ? "" : `, ${ratio.toFixed(1)} times the work of plain`;
    sentence = `${Math.round(100 * facts.solvable)} % of its boards are solvable; ${attempts}${Math.round(facts.evaluations)} network evaluations a board${cost}.`;
  }
  $("sampler-note").textContent = sentence;
}

async function generate(form) {
  pause();
  hideChances();
  const request = { count: Number(form.count.value), sampler: form.sampler.value };
  if (Number(form.temperature.value) !== 1) request.temperature = Number(form.temperature.value);
  if (form.sweeps.value !== "") request.sweeps = Number(form.sweeps.value);
  if (form.seed.value !== "") request.seed = Number(form.seed.value);
  Object.assign(request, wishes(form));
  if (form.keep.value) request.only_solvable = true;
  if (form.keep.value && form.keep.value !== "solvable") request.difficulty = form.keep.value;
  $("generate").textContent = "Sampling…";
  enable($("generate"), false);
  $("watch-stop").hidden = false;
  $("watch").setAttribute("aria-busy", "true");
  try {
    await sampling.run(async (signal) => {
      for await (const event of sample(request, signal)) hear(event);
    });
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

function hear(data, live = true) {
  const name = data.type;
  const following = live && shown === step && !playing;
  if (name === "start") {
    // Only now: without a server, the boards from before stay.
    [cards, byNumber, events, step, evaluations] = [[], new Map(), [], 0, data.evaluations];
    $("watch-boards").replaceChildren();
    $("scrubber").hidden = false;
    for (let i = 0; i < data.count; i++) cards.push(card(i, data));
    show(0);
  } else if (name === "boards") {
    const free = cards.filter((one) => !one.kept);
    data.numbers.forEach((number, i) => begin(free[i], number));
  } else if (name === "commit") {
    step += 1;
    data.numbers.forEach((number, i) => {
      const one = byNumber.get(number);
      one.commits.push({ step, cell: data.cells[i], tile: data.tiles[i], chances: data.probabilities[i] });
    });
    if (following) show(step);
  } else if (name === "attempt") {
    data.numbers.forEach((number, i) => data.accepted[i] || reject(byNumber.get(number)));
  } else if (name === "judged") {
    const one = byNumber.get(data.number);
    Object.assign(one, { text: data.board, title: data.title, kept: data.kept, attempts: data.attempts });
    one.verdict.replaceChildren(judgementNode(data.judgement));
    one.judgement = data.judgement;
    for (const each of one.buttons) each.disabled = false;
    tell(one);
    if (live) draw(one);
  } else if (name === "end") {
    summary(data);
  }
  events.push(data);
}

const remember = () => keep("watch", events, session);

function begin(one, number) {
  byNumber.set(number, one);
  Object.assign(one, { number, attempts: 1, text: null });
  if (one.commits.length) one.commits.push({ step, clear: true });
  one.verdict.replaceChildren();
  for (const each of one.buttons) each.disabled = true;
  tell(one);
}

// The critic has rejected what was sampled: the board is cleared, and sampled again.
function reject(one) {
  one.attempts += 1;
  one.commits.push({ step, clear: true });
  tell(one);
}

function tell(one) {
  const rejected = one.attempts > 1 ? `; attempt ${one.attempts}, the critic rejected ${one.attempts - 1}` : "";
  one.label.textContent = `seed ${one.seed}, board ${one.number}${rejected}`;
}

function summary({ kept, sampled }) {
  const attempts = events.filter((each) => each.type === "attempt").reduce((sum, each) => sum + each.numbers.length, 0);
  const left = kept < cards.length ? ` Only ${kept} of ${plural(sampled, "board")} matched; that is where it stops.` : "";
  const solved = cards.filter((one) => one.judgement?.verdict === "solved" && one.kept).length;
  $("watch-summary").textContent =
    `${solved} of ${plural(kept, "board")} solvable; ${plural(attempts, "attempt")} and ${plural(attempts * evaluations, "network evaluation")} in all.${left}`;
}

// Boards that were not sampled to the end can be completed.
function stopped() {
  for (const one of cards) {
    if (one.text !== null) continue;
    one.verdict.textContent = "Stopped. Edit takes it to Draw, where Complete fills the rest.";
    one.edit.disabled = false;
  }
}

function card(place, { seed, model: name, board }) {
  const canvas = el("canvas", { tabIndex: 0 });
  const one = { seed, place, number: place, start: parse(board), commits: [], text: null, attempts: 1, title: `${name} ${seed}-${place}` };
  one.verdict = el("p", { className: "verdict" });
  one.label = el("p", { className: "soft small" });
  one.view = new BoardView(canvas, `Board ${place + 1}: `);
  one.edit = button("Edit", () => does.open("draw", one.text ?? format(boardAt(one, step)), one.title));
  one.buttons = [
    button("Play", () => playCard(one)),
    one.edit,
    button("Keep", () => does.keepBoard(one.text, one.title, one.judgement)),
  ];
  for (const each of one.buttons) each.disabled = true;
  // A click plays. What a mouse points at, or a finger presses on for long, is explained.
  let pressing = null, pressed = false;
  const explain = (event) => chances(one, one.view.cellAt(event), event.clientX, event.clientY);
  const release = () => (clearTimeout(pressing), (pressing = null));
  canvas.onpointermove = (event) => event.pointerType !== "touch" && explain(event);
  canvas.onpointerdown = (event) => {
    pressed = false;
    if (event.pointerType !== "touch") return;
    hideChances();
    pressing = setTimeout(() => ((pressed = true), explain(event)), LONG_PRESS);
  };
  canvas.onpointerup = release;
  canvas.onpointerleave = (event) => event.pointerType !== "touch" && hideChances();
  canvas.onpointercancel = () => (release(), hideChances());
  canvas.oncontextmenu = (event) => (pressing || pressed) && event.preventDefault();
  canvas.onclick = () => pressed || playCard(one);
  canvas.onblur = () => (hideChances(), (one.cursor = undefined), draw(one));
  canvas.onkeydown = (event) => inspect(one, event);
  tell(one);
  $("watch-boards").append(el("article", { className: "card" }, canvas, one.label, one.verdict, el("div", { className: "buttons" }, ...one.buttons)));
  return one;
}

function playCard(one) {
  if (one.text === null) return;
  hideChances();
  does.open("play", one.text, one.title);
}

// The commits of the attempt that is shown at a step.
function commitsAt(one, at) {
  const until = one.commits.findLastIndex((each) => each.step <= at && !(each.clear && each.step === at));
  const from = one.commits.findLastIndex((each, i) => i <= until && each.clear);
  return one.commits.slice(from + 1, until + 1);
}

function boardAt(one, at) {
  const board = copy(one.start);
  for (const { cell, tile } of commitsAt(one, at)) board.cells[cell] = tile;
  return board;
}

function draw(one) {
  const last = commitsAt(one, shown).at(-1);
  const fresh = last?.step === shown && one.text === null ? [last.cell] : [];
  one.view.show(boardAt(one, shown), { fresh, cursor: one.cursor });
}

function show(at) {
  shown = Math.max(0, Math.min(at, step));
  const all = Math.max(step, evaluations);
  $("watch-step").max = all;
  $("watch-step").value = shown;
  $("watch-at").value = `step ${shown} of ${all}`;
  for (const one of cards) draw(one);
}

function play() {
  if (shown >= step) show(0);
  $("watch-play").textContent = "❚❚";
  $("watch-play").setAttribute("aria-label", "Pause");
  playing = setInterval(() => (shown >= step ? pause() : show(shown + 1)), 70);
}

function pause() {
  clearInterval(playing);
  playing = null;
  $("watch-play").textContent = "▶";
  $("watch-play").setAttribute("aria-label", "Play the sampling again");
}

function inspect(one, event) {
  const { width } = one.start, next = arrowTo(one.start, one.cursor, event.key);
  if (event.key === "Enter") return playCard(one);
  if (next === null) return;
  event.preventDefault();
  one.cursor = next;
  draw(one);
  const box = one.view.canvas.getBoundingClientRect(), cell = box.width / width;
  chances(one, one.cursor, box.left + ((one.cursor % width) + 1) * cell, box.top + (Math.floor(one.cursor / width) + 1) * cell);
}

// The probabilities of a cell at its commit, as of the step that is shown.
function chances(one, cell, x, y) {
  const commits = commitsAt(one, shown), which = commits.findLastIndex((each) => each.cell === cell);
  if (cell < 0 || which < 0) return hideChances();
  const { tile, chances: shares } = commits[which];
  const lines = shares.map((share, i) => {
    const fill = el("i");
    fill.style.width = `${100 * share}%`;
    const percent = share >= 0.9995 ? "100 %" : share < 0.0005 ? "0 %" : `${(100 * share).toFixed(1)} %`;
    return el("li", { className: i === tile ? "drawn" : "", title: NAMES[i] }, tileIcon(i, 14), el("span", { className: "bar" }, fill), percent);
  });
  const name = cellName(boardAt(one, shown), cell);
  $("chances").replaceChildren(el("h3", { textContent: `${name}: commit ${which + 1}` }), el("ol", {}, ...lines));
  $("chances").hidden = false;
  const box = $("chances").getBoundingClientRect();
  $("chances").style.left = `${Math.max(8, Math.min(x + 16, innerWidth - box.width - 8))}px`;
  $("chances").style.top = `${y + 16 + box.height > innerHeight ? Math.max(8, y - box.height - 16) : y + 16}px`;
}

function hideChances() {
  $("chances").hidden = true;
}
