// A board on a canvas, drawn from a sheet of tiles, sharp at every size. There is a light and a dark sheet.

import { NAMES, OUTSIDE, describe, format, looks } from "./board.js";

const COLUMNS = 8, LOOKS = 3;
// What lies over the tiles.
const INKS = {
  light: { target: "#0b7a8c", lit: "rgba(11, 122, 140, 0.3)", mark: "#d6256b", hatch: "rgba(90, 40, 60, 0.38)" },
  dark: { target: "#5cc4cf", lit: "rgba(92, 196, 207, 0.32)", mark: "#ff6fa3", hatch: "rgba(255, 143, 180, 0.42)" },
};

const sheets = new Map(); // by theme: { image, ready, scaled }
const views = new Set(), icons = new Set();
let theme = "light";

function sheetOf(name) {
  if (!sheets.has(name)) {
    const image = new Image(), ready = image.decode.bind(image);
    image.src = name === "dark" ? "tiles-dark.svg" : "tiles.svg";
    sheets.set(name, { image, ready: ready(), scaled: new Map() });
  }
  return sheets.get(name);
}

// The tiles of a theme, on everything that is shown from now on and already.
export function useTiles(name) {
  theme = name;
  sheetOf(name).ready.then(() => {
    for (const each of [...views, ...icons]) each.canvas.isConnected ? each.draw() : each.gone?.();
  });
}

function sprites(cell, name = theme) {
  const { image, scaled } = sheetOf(name);
  if (!scaled.has(cell)) {
    const canvas = document.createElement("canvas");
    canvas.width = cell * COLUMNS;
    canvas.height = cell * LOOKS;
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    if (scaled.size > 12) scaled.clear();
    scaled.set(cell, canvas);
  }
  return scaled.get(cell);
}

export function tileIcon(tile, side = 28) {
  const canvas = document.createElement("canvas"), size = side * 2;
  canvas.width = canvas.height = size;
  canvas.className = "icon";
  canvas.setAttribute("aria-hidden", "true");
  const icon = { canvas, draw: () => canvas.getContext("2d").drawImage(sprites(size), tile * size, 0, size, size, 0, 0, size, size) };
  icon.gone = () => icons.delete(icon);
  icons.add(icon);
  sheetOf(theme).ready.then(icon.draw);
  return canvas;
}

function paintTiles(on, board, cell, from) {
  const look = looks(board);
  board.cells.forEach((tile, i) => {
    if (look[i] === OUTSIDE) return;
    const x = (i % board.width) * cell, y = Math.floor(i / board.width) * cell;
    on.drawImage(from, tile * cell, look[i] * cell, cell, cell, x, y, cell, cell);
  });
}

// A picture of a board for paper, in the light tiles.
export async function drawBoard(board, cell) {
  const canvas = document.createElement("canvas");
  await sheetOf("light").ready;
  canvas.width = cell * board.width;
  canvas.height = cell * board.height;
  paintTiles(canvas.getContext("2d"), board, cell, sprites(cell, "light"));
  return canvas;
}

export class BoardView {
  // `label` begins what screen readers are told; the board itself follows.
  constructor(canvas, label = "") {
    this.canvas = canvas;
    this.label = label;
    this.board = null;
    this.over = {};
    // What takes keys must say so, or screen readers keep the arrow keys to themselves.
    canvas.setAttribute("role", canvas.tabIndex >= 0 ? "application" : "img");
    new ResizeObserver(() => this.draw()).observe(canvas);
    views.add(this);
    sheetOf(theme).ready.then(() => this.draw());
  }

  // `over`: what lies over the board: sets of cells `dead`, `targets`, `fresh`, `cure`, and a `cursor` and `chosen` cell.
  show(board, over = {}) {
    this.board = board;
    this.over = over;
    this.canvas.style.aspectRatio = `${board.width} / ${board.height}`;
    this.canvas.style.setProperty("--columns", board.width);
    this.canvas.style.setProperty("--shape", board.width / board.height);
    this.canvas.dataset.board = format(board); // what is shown, for those who cannot see it
    this.name(this.label);
    this.draw();
  }

  gone() {
    views.delete(this);
  }

  name(label) {
    this.label = label;
    this.canvas.setAttribute("aria-label", this.board ? `${label}${describe(this.board)}` : label);
  }

  draw() {
    const { canvas, board, over } = this;
    if (!board || !sheetOf(theme).image.naturalWidth || !canvas.clientWidth) return;
    const room = Math.min(canvas.clientWidth / board.width, canvas.clientHeight / board.height);
    const cell = Math.max(4, Math.round(room * devicePixelRatio));
    canvas.width = cell * board.width;
    canvas.height = cell * board.height;
    const on = canvas.getContext("2d");
    paintTiles(on, board, cell, sprites(cell));
    const each = (cells, paint) => {
      for (const i of cells ?? []) paint((i % board.width) * cell, Math.floor(i / board.width) * cell);
    };
    const { target, lit, mark } = INKS[theme];
    each(over.dead, (x, y) => this.#hatch(on, x, y, cell));
    each(over.targets, (x, y) => {
      on.fillStyle = lit;
      on.fillRect(x, y, cell, cell);
      on.fillStyle = target;
      on.beginPath();
      on.arc(x + cell / 2, y + cell / 2, cell * 0.13, 0, 7);
      on.fill();
    });
    each(over.fresh, (x, y) => this.#outline(on, x, y, cell, mark, 0.09));
    each(over.cure, (x, y) => this.#outline(on, x, y, cell, mark, 0.14, [cell / 5, cell / 8]));
    each(over.chosen === undefined ? [] : [over.chosen], (x, y) => this.#outline(on, x, y, cell, target, 0.12));
    each(over.cursor === undefined ? [] : [over.cursor], (x, y) => {
      this.#outline(on, x, y, cell, "#ffffff", 0.16);
      this.#outline(on, x, y, cell, "#2d3142", 0.08);
    });
  }

  #outline(on, x, y, cell, colour, thick, dash = []) {
    const line = Math.max(2, cell * thick);
    on.strokeStyle = colour;
    on.lineWidth = line;
    on.setLineDash(dash);
    on.strokeRect(x + line / 2, y + line / 2, cell - line, cell - line);
    on.setLineDash([]);
  }

  #hatch(on, x, y, cell) {
    on.save();
    on.beginPath();
    on.rect(x, y, cell, cell);
    on.clip();
    on.strokeStyle = INKS[theme].hatch;
    on.lineWidth = Math.max(1, cell / 24);
    for (let offset = -cell; offset < cell; offset += cell / 4) {
      on.beginPath();
      on.moveTo(x + offset, y + cell);
      on.lineTo(x + offset + cell, y);
      on.stroke();
    }
    on.restore();
  }

  // The cell under a pointer, or -1.
  cellAt(event) {
    const box = this.canvas.getBoundingClientRect();
    const column = Math.floor(((event.clientX - box.left) / box.width) * this.board.width);
    const row = Math.floor(((event.clientY - box.top) / box.height) * this.board.height);
    const inside = row >= 0 && column >= 0 && row < this.board.height && column < this.board.width;
    return inside ? row * this.board.width + column : -1;
  }
}

export function cellName(board, cell) {
  return `row ${Math.floor(cell / board.width) + 1}, column ${(cell % board.width) + 1}, ${NAMES[board.cells[cell]]}`;
}
