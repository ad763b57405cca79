// The page as a whole: its parts, which of them is shown, light and dark, and whether the server is there.

import { health, onConnection } from "./api.js";
import { PLAYER } from "./board.js";
import * as collectionPart from "./collection.js";
import { $, toast } from "./dom.js";
import * as drawPart from "./draw.js";
import * as importing from "./importing.js";
import * as playPart from "./play.js";
import { boardIn } from "./share.js";
import { collection, keep, recall } from "./store.js";
import { tileIcon } from "./view.js";
import * as watchPart from "./watch.js";

const TABS = ["watch", "play", "draw", "collection"];

function show(tab) {
  for (const each of TABS) $(each).hidden = each !== tab;
  for (const button of document.querySelectorAll("[data-tab]"))
    button.dataset.tab === tab ? button.setAttribute("aria-current", "page") : button.removeAttribute("aria-current");
  history.replaceState(null, "", `#${tab}`);
  document.title = `${tab[0].toUpperCase()}${tab.slice(1)} · maskoban studio`;
}

// Put a board on the table of a part.
function open(tab, board) {
  (tab === "play" ? playPart : drawPart).load(board);
  show(tab);
  $(`${tab}-board`).focus({ preventScroll: true });
  scrollTo({ top: 0 });
}

function keepBoard(board, title) {
  toast(collection.add(board, title) ? "Kept in your collection." : "It is in your collection already.");
}

function theme(next) {
  const wanted = next ?? recall("theme", null) ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
  document.documentElement.dataset.theme = wanted;
  $("theme").textContent = wanted === "dark" ? "☀ Light" : "☾ Dark";
}

function route() {
  const board = boardIn(location.hash);
  if (board) return open("play", board);
  if (location.hash.startsWith("#board=")) toast("This link holds no board.");
  show(TABS.find((tab) => location.hash === `#${tab}`) ?? "watch");
}

const does = { open, keepBoard, importDialog: importing.dialog };
theme();
$("theme").onclick = () => {
  const next = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
  keep("theme", next);
  theme(next);
};
$("logo").append(tileIcon(PLAYER));
for (const button of document.querySelectorAll("[data-tab]")) button.onclick = () => show(button.dataset.tab);
onConnection((there) => {
  $("offline").hidden = there;
  if (there) toast("The server is back.");
});
for (const part of [watchPart, playPart, drawPart, collectionPart, importing]) part.start(does);
addEventListener("hashchange", route);
route();
health().catch((error) => toast(error.message));
document.documentElement.dataset.ready = "true";
