// The page as a whole: its parts, which of them is shown, light and dark, and whether the server is there.

import { connect, onConnection, onLoading } from "./api.js";
import { PLAYER } from "./board.js";
import * as collectionPart from "./collection.js";
import { $, toast } from "./dom.js";
import * as drawPart from "./draw.js";
import * as importing from "./importing.js";
import * as playPart from "./play.js";
import { boardIn } from "./share.js";
import { FULL, collection, keep, recall } from "./store.js";
import { tileIcon, useTiles } from "./view.js";
import * as watchPart from "./watch.js";

const TABS = ["play", "watch", "draw", "collection"];

let shown = "play";

function show(tab) {
  shown = tab;
  for (const each of TABS) $(each).hidden = each !== tab;
  for (const button of document.querySelectorAll("[data-tab]"))
    button.dataset.tab === tab ? button.setAttribute("aria-current", "page") : button.removeAttribute("aria-current");
  document.title = `${tab[0].toUpperCase()}${tab.slice(1)} · maskoban`;
  scrollTo({ top: 0 });
  ({ play: playPart, watch: watchPart, collection: collectionPart })[tab]?.shownNow();
}

// The address of a part is no element's id, so that the browser does not scroll to it.
const address = (tab) => `#/${tab}`;

// Show a part, so that Back leads to the one before.
function go(tab) {
  if (tab !== shown) history.pushState(null, "", address(tab));
  show(tab);
}

// Put a board on the table of a part.
function open(tab, board, title) {
  (tab === "play" ? playPart : drawPart).load(board, title);
  go(tab);
  $(`${tab}-board`).focus({ preventScroll: true });
}

function keepBoard(board, title, judgement) {
  const added = collection.add([{ board, title, judgement }]);
  toast(added === null ? FULL : added ? "Kept in your collection." : "It is in your collection already.");
}

function theme(next) {
  const wanted = next ?? recall("theme", null) ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
  document.documentElement.dataset.theme = wanted;
  $("theme").textContent = wanted === "dark" ? "☀" : "☾";
  useTiles(wanted);
}

function route() {
  const linked = location.hash.startsWith("#board="), board = boardIn(location.hash);
  const [, day] = location.hash.match(/^#\/daily(?:\/(\d{4}-\d\d-\d\d))?$/) ?? [null, null];
  const tab = board || day !== null ? "play" : TABS.find((each) => [address(each), `#${each}`].includes(location.hash)) ?? shown;
  history.replaceState(null, "", address(tab));
  show(tab);
  if (board) open("play", board);
  else if (day !== null) playPart.daily(day);
  else if (linked) toast("This link holds no board.");
}

const does = { open, go, keepBoard, importDialog: importing.dialog };
theme();
$("theme").onclick = () => {
  const next = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
  keep("theme", next);
  theme(next);
};
matchMedia("(prefers-color-scheme: dark)").onchange = () => theme();
$("logo").append(tileIcon(PLAYER));
for (const button of document.querySelectorAll("[data-tab]")) button.onclick = () => go(button.dataset.tab);
$("skip").onclick = (event) => (event.preventDefault(), $("main").focus());
onConnection((there) => {
  $("offline").hidden = there;
  if (there) connect().then(() => toast("The server is back."), (error) => toast(error.message));
});
onLoading((bytes) => {
  $("loading").hidden = bytes === null;
  const mega = (number) => (number / 1e6).toFixed(1);
  if (bytes) $("loading").textContent = `Loading the model: ${mega(bytes.loaded)} of ${mega(bytes.total)} MB`;
});
for (const part of [watchPart, playPart, drawPart, collectionPart, importing]) part.start(does);
addEventListener("hashchange", route);
route();
connect().catch((error) => toast(error.message));
document.documentElement.dataset.ready = "true";
