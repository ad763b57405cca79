// What a board is: rows of tiles as numbers, as everywhere in maskoban. Text exists only at the edges.

export const [WALL, FLOOR, PLAYER, BOX, GOAL, BOX_ON_GOAL, PLAYER_ON_GOAL, MASK] = [0, 1, 2, 3, 4, 5, 6, 7];
export const SYMBOLS = "# @$.*+?";
export const NAMES = [
  "wall", "floor", "player", "box", "goal", "box on goal", "player on goal", "to be drawn",
];
export const MAX_SIDE = 64;

// How a cell looks beyond its tile: see surroundings.py, whose rules these are.
export const [PLAIN, AT_WALL, ROCK, OUTSIDE] = [0, 1, 2, 3];

export const has = {
  player: (tile) => tile === PLAYER || tile === PLAYER_ON_GOAL,
  box: (tile) => tile === BOX || tile === BOX_ON_GOAL,
  goal: (tile) => tile === GOAL || tile === BOX_ON_GOAL || tile === PLAYER_ON_GOAL,
};

// The board a text draws. Rows of floor at the edges are rows: what people painted comes back as they painted it.
export function parse(text) {
  const rows = text.replace(/\r/g, "").split("\n").map((row) => row.replace(/[-_]/g, " "));
  const width = Math.max(0, ...rows.map((row) => row.length));
  if (!width || width > MAX_SIDE || rows.length > MAX_SIDE) throw new Error("not a board of 1 x 1 to 64 x 64");
  const cells = Uint8Array.from(rows.map((row) => row.padEnd(width)).join(""), (letter) => {
    const tile = SYMBOLS.indexOf(letter);
    if (tile < 0) throw new Error(`${letter} is no tile`);
    return tile;
  });
  return { height: rows.length, width, cells };
}

export function format({ height, width, cells }) {
  const row = (r) => Array.from(cells.subarray(r * width, (r + 1) * width), (tile) => SYMBOLS[tile]).join("");
  return Array.from({ length: height }, (_, r) => row(r)).join("\n");
}

// A board as every part of the page writes it: all rows of one length, floor as spaces. It is known by this text.
export const standard = (text) => format(parse(text));

export const copy = (board) => ({ ...board, cells: board.cells.slice() });

export function filled(height, width, tile) {
  const cells = new Uint8Array(height * width).fill(WALL);
  for (let r = 1; r < height - 1; r++) cells.fill(tile, r * width + 1, (r + 1) * width - 1);
  return { height, width, cells };
}

// The board in a frame of another size; new cells are `tile`, and the outermost ring is wall.
export function resized(board, height, width, tile) {
  const next = filled(height, width, tile);
  for (let r = 1; r < Math.min(height, board.height) - 1; r++)
    for (let c = 1; c < Math.min(width, board.width) - 1; c++)
      next.cells[r * width + c] = board.cells[r * board.width + c];
  return next;
}

// A quarter turn to the right.
export function rotated({ height, width, cells }) {
  const turned = cells.map((_, i) => cells[(height - 1 - (i % height)) * width + Math.floor(i / height)]);
  return { height: width, width: height, cells: turned };
}

export function mirrored({ height, width, cells }) {
  return { height, width, cells: cells.map((_, i) => cells[i - (i % width) + width - 1 - (i % width)]) };
}

// The walls a board needs around it: a ring where it is open at its edge.
const missingRing = ({ height, width, cells }) => Number(cells.some((tile, i) => {
  const row = Math.floor(i / width), column = i % width;
  return tile !== WALL && (!row || !column || row === height - 1 || column === width - 1);
}));

// The board within walls, at least so many rows and columns; null where it has too many.
export function enclosed(board, { least, most }) {
  const ring = 2 * missingRing(board), [height, width] = [board.height, board.width].map((side) => Math.max(side + ring, least));
  return Math.max(height, width) > most ? null : padded(board, height, width);
}

// The board in the middle of a larger one of walls, and where its first cell is. The outermost ring stays wall, so a board
// that is open at its edge needs room around it. Null where it does not fit.
export function padded(board, height, width) {
  const { cells } = board, ring = missingRing(board);
  if (board.height + 2 * ring > height || board.width + 2 * ring > width) return null;
  const top = Math.max(ring, (height - board.height) >> 1), left = Math.max(ring, (width - board.width) >> 1);
  const next = { height, width, cells: new Uint8Array(height * width).fill(WALL) };
  cells.forEach((tile, i) => (next.cells[(top + Math.floor(i / board.width)) * width + left + (i % board.width)] = tile));
  return { board: next, top, left };
}

export function cut(board, top, left, height, width) {
  const cells = new Uint8Array(height * width);
  for (let r = 0; r < height; r++) cells.set(board.cells.subarray((top + r) * board.width + left, (top + r) * board.width + left + width), r * width);
  return { height, width, cells };
}

// The cells of one tile that hang together with a cell.
export const area = (board, cell) => flood(board, [cell], (each) => board.cells[each] === board.cells[cell]);

export function neighbours({ height, width }, cell, diagonal = false) {
  const row = Math.floor(cell / width), column = cell % width, found = [];
  for (let r = row - 1; r <= row + 1; r++)
    for (let c = column - 1; c <= column + 1; c++) {
      const straight = r === row || c === column;
      if ((r !== row || c !== column) && (straight || diagonal) && r >= 0 && c >= 0 && r < height && c < width)
        found.push(r * width + c);
    }
  return found;
}

// The cell an arrow key leads to, which at the edge is the same one; null for other keys.
export function arrowTo({ height, width }, cell, key) {
  const step = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[key];
  if (!step) return null;
  if (cell === undefined) return Math.min(1, height - 1) * width + Math.min(1, width - 1);
  const row = Math.floor(cell / width) + step[0], column = (cell % width) + step[1];
  return row < 0 || column < 0 || row >= height || column >= width ? cell : row * width + column;
}

// The cells of a stroke from one cell to another, the first one left out: pointers are heard too seldom to touch them all.
export function line({ width }, from, to) {
  const row = Math.floor(from / width), column = from % width;
  const down = Math.floor(to / width) - row, right = (to % width) - column, steps = Math.max(Math.abs(down), Math.abs(right));
  return Array.from({ length: steps }, (_, i) => {
    const share = (i + 1) / steps;
    return (row + Math.round(down * share)) * width + column + Math.round(right * share);
  });
}

function flood(board, start, through) {
  const reached = new Set(start.filter(through)), queue = [...reached];
  for (const cell of queue)
    for (const next of neighbours(board, cell))
      if (through(next) && !reached.has(next)) reached.add(next), queue.push(next);
  return reached;
}

export function looks(board) {
  const { height, width, cells } = board;
  const all = Array.from(cells.keys());
  const open = (cell) => cells[cell] !== WALL;
  const inside = flood(board, all.filter((cell) => cells[cell] > FLOOR), open);
  const rim = all.filter((cell) => {
    const row = Math.floor(cell / width), column = cell % width;
    return !row || !column || row === height - 1 || column === width - 1;
  });
  const outside = flood(board, rim, (cell) => open(cell) && !inside.has(cell));
  const room = (cell) => cell >= 0 && cell < cells.length && open(cell) && !outside.has(cell);
  return Uint8Array.from(all, (cell) => {
    if (outside.has(cell)) return OUTSIDE;
    if (open(cell)) return cell >= width && !open(cell - width) ? AT_WALL : PLAIN;
    if (room(cell + width)) return AT_WALL;
    return neighbours(board, cell, true).some(room) ? PLAIN : ROCK;
  });
}

export function describe(board) {
  const count = (test) => board.cells.filter(test).length;
  const boxes = count(has.box), done = count((tile) => tile === BOX_ON_GOAL);
  const masks = count((tile) => tile === MASK);
  const unfinished = masks ? `, ${masks} cells to be drawn` : "";
  return `Board of ${board.height} by ${board.width}, ${boxes} boxes, ${done} on goals${unfinished}`;
}
