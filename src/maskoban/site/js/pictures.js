// Boards as PNG, and solutions as animated GIF. `sheet` is an ImageBitmap of the tiles: a column a token, a row a look.

import { BOX, GOAL, OUTSIDE, PLAYER, has, looks } from "./board.js";
import { LevelError } from "./levels.js";
import { GIFEncoder, applyPalette, quantize } from "./gifenc.js";

const [START, WALK, PUSH, END] = [800, 80, 130, 3000]; // milliseconds, as in pictures/gif.py
const MAX_MOVES = 1500;
const STEPS = { l: [0, -1], r: [0, 1], u: [-1, 0], d: [1, 0] };

export const cellSize = ({ height, width }, most, side) => Math.max(8, Math.min(most, Math.floor(side / Math.max(height, width))));

function draw(context, board, look, sheet, cell) {
  for (const [i, tile] of board.cells.entries()) {
    if (look[i] === OUTSIDE) continue;
    const x = (i % board.width) * cell, y = Math.floor(i / board.width) * cell;
    context.drawImage(sheet, tile * cell, look[i] * cell, cell, cell, x, y, cell, cell);
  }
}

export async function png({ board, sheet, cell }) {
  const canvas = new OffscreenCanvas(board.width * cell, board.height * cell);
  draw(canvas.getContext("2d"), board, looks(board), sheet, cell);
  return canvas.convertToBlob({ type: "image/png" });
}

// One step of the game, in place; refuses what the rules forbid.
function play(board, letter, index) {
  const { cells, width, height } = board, from = cells.findIndex(has.player);
  const [down, right] = STEPS[letter.toLowerCase()], push = letter < "a";
  const beyond = (steps) => {
    const row = Math.floor(from / width) + steps * down, column = (from % width) + steps * right;
    return row < 0 || column < 0 || row >= height || column >= width ? -1 : row * width + column;
  };
  const free = (cell) => cell >= 0 && cells[cell] !== 0 && !has.box(cells[cell]);
  const there = beyond(1), further = beyond(2);
  if (push ? !(there >= 0 && has.box(cells[there]) && free(further)) : !free(there))
    throw new LevelError(`step ${index} ('${letter}') is not possible; these moves do not solve the board`);
  const move = (what, on, to) => {
    // A goal's tile numbers: goal 4, box on goal 5, player on goal 6; without one: floor 1, player 2, box 3.
    cells[to] = cells[to] === GOAL ? on : what;
  };
  const leave = (cell) => (cells[cell] = has.goal(cells[cell]) ? GOAL : 1);
  if (push) leave(there), move(BOX, 5, further);
  leave(from);
  move(PLAYER, 6, there);
}

export function solutionGif({ board: first, moves, sheet, cell }) {
  if (moves.length > MAX_MOVES)
    throw new LevelError(`a solution of ${moves.length} moves is too long to animate; expected at most ${MAX_MOVES}`);
  const board = { ...first, cells: first.cells.slice() }, look = looks(board);
  const width = board.width * cell, height = board.height * cell;
  const canvas = new OffscreenCanvas(width, height), context = canvas.getContext("2d", { willReadFrequently: true });
  const gif = GIFEncoder();
  // One palette for all frames: the colours of the tiles.
  const tiles = new OffscreenCanvas(sheet.width, sheet.height).getContext("2d");
  tiles.drawImage(sheet, 0, 0);
  const palette = [[255, 255, 255], ...quantize(tiles.getImageData(0, 0, sheet.width, sheet.height).data, 126)];
  const frame = (step) => {
    context.fillStyle = "#fff";
    context.fillRect(0, 0, width, height);
    draw(context, board, look, sheet, cell);
    context.fillStyle = "#c8862b";
    context.fillRect(0, height - Math.max(2, cell >> 3), Math.round((width * step) / Math.max(1, moves.length)), height);
    const push = step && moves[step - 1] < "a";
    const delay = step === moves.length ? END : step === 0 ? START : push ? PUSH : WALK;
    gif.writeFrame(applyPalette(context.getImageData(0, 0, width, height).data, palette), width, height, { palette: step ? undefined : palette, delay });
  };
  frame(0);
  for (const [index, letter] of [...moves].entries()) {
    play(board, letter, index);
    frame(index + 1);
  }
  gif.finish();
  if (board.cells.includes(BOX)) throw new LevelError("these moves do not solve the board");
  return new Blob([gif.bytes()], { type: "image/gif" });
}
