// The rules: walking, pushing, going back and forth in time, and the shortest ways to do what a click asks for.

import { BOX, BOX_ON_GOAL, FLOOR, GOAL, MASK, PLAYER, PLAYER_ON_GOAL, WALL, has } from "./board.js";

const LETTERS = "lurd"; // opposite sides are two apart, so that side ^ 2 is the other one
const START = 5; // in walks: no letter leads there

export class Game {
  constructor(board) {
    this.start = board;
    const { width, cells } = board;
    this.offsets = { l: -1, u: -width, r: 1, d: width };
    this.walls = cells.map((tile) => tile === WALL);
    this.goals = cells.map((tile) => has.goal(tile));
    this.boxes = cells.map((tile) => has.box(tile));
    this.player = cells.findIndex(has.player);
    this.moves = ""; // everything played, what has been taken back included
    this.at = 0; // how much of it stands
    this.marks = []; // where gestures begin: a walk, a swipe or a drag is undone at once
    // For every cell its four neighbours, in the order of the letters; -1 beyond the edge, which acts as a wall.
    this.near = new Int32Array(cells.length * 4).map((_, i) => {
      const cell = i >> 2, letter = LETTERS[i & 3], there = cell + this.offsets[letter];
      const wraps = (letter === "l" && cell % width === 0) || (letter === "r" && there % width === 0);
      return wraps || there < 0 || there >= cells.length ? -1 : there;
    });
  }

  get playable() {
    const { cells } = this.start, count = (test) => cells.filter(test).length, boxes = count(has.box);
    return count(has.player) === 1 && boxes > 0 && boxes === count(has.goal) && !cells.includes(MASK);
  }
  get solved() {
    return this.boxes.every((box, cell) => !box || this.goals[cell]);
  }
  get played() {
    return this.moves.slice(0, this.at);
  }
  get pushes() {
    return this.played.replace(/[a-z]/g, "").length;
  }

  board() {
    const cells = this.start.cells.map((tile, cell) => {
      if (this.walls[cell] || tile === MASK) return tile;
      if (this.boxes[cell]) return this.goals[cell] ? BOX_ON_GOAL : BOX;
      if (cell === this.player) return this.goals[cell] ? PLAYER_ON_GOAL : PLAYER;
      return this.goals[cell] ? GOAL : FLOOR;
    });
    return { ...this.start, cells };
  }

  next(cell, letter) {
    return this.near[cell * 4 + LETTERS.indexOf(letter)];
  }
  // Free to stand on, for the player or a box; a box that was lifted from `lifted` is not in the way.
  free(cell, lifted = -1) {
    return cell >= 0 && !this.walls[cell] && (!this.boxes[cell] || cell === lifted);
  }

  // One step; false where the rules forbid it. Upper and lower case are told apart by what happens.
  step(letter, remembered = false) {
    letter = letter.toLowerCase();
    const there = this.next(this.player, letter);
    if (there < 0 || this.walls[there]) return false;
    let done = letter;
    if (this.boxes[there]) {
      const beyond = this.next(there, letter);
      if (!this.free(beyond)) return false;
      this.boxes[there] = 0;
      this.boxes[beyond] = 1;
      done = letter.toUpperCase();
    }
    this.player = there;
    if (!remembered && this.moves[this.at] !== done) {
      this.moves = this.played + done;
      this.marks = this.marks.filter((mark) => mark <= this.at);
    }
    this.at += 1;
    return true;
  }

  undo() {
    if (!this.at) return false;
    const done = this.moves[this.at - 1], letter = done.toLowerCase();
    if (done !== letter) {
      this.boxes[this.next(this.player, letter)] = 0;
      this.boxes[this.player] = 1;
    }
    this.player -= this.offsets[letter];
    this.at -= 1;
    return true;
  }
  redo() {
    return this.at < this.moves.length && this.step(this.moves[this.at], true);
  }
  // What is played from here on is one gesture.
  mark() {
    if (!this.marks.includes(this.at)) this.marks = [...this.marks, this.at].sort((a, b) => a - b);
  }
  undoGesture() {
    this.goTo(this.marks.findLast((mark) => mark < this.at) ?? 0);
  }
  redoGesture() {
    this.goTo(this.marks.find((mark) => mark > this.at) ?? this.moves.length);
  }
  goTo(at) {
    while (this.at > at && this.undo());
    while (this.at < at && this.redo());
  }

  // Shortest walks from a cell, where so said with a box lifted and put `onto` another cell: for each cell reached the
  // number of the letter that leads there, counted from 1. Once all of `wanted` are reached, nobody needs the rest.
  walks(from, lifted = -1, onto = -1, wanted = null) {
    const came = new Uint8Array(this.walls.length), queue = [from];
    came[from] = START;
    let left = wanted ? wanted.filter((cell) => cell !== from).length : Infinity;
    for (let i = 0; i < queue.length && left; i++)
      for (let side = 0; side < 4; side++) {
        const there = this.near[queue[i] * 4 + side];
        if (there === onto || came[there] || !this.free(there, lifted)) continue;
        came[there] = side + 1;
        queue.push(there);
        if (wanted?.includes(there)) left -= 1;
      }
    return came;
  }
  // The letters of such a walk; null where it does not lead.
  pathIn(came, to) {
    if (!came[to]) return null;
    let path = "";
    for (let cell = to; came[cell] !== START; cell -= this.offsets[path[0]]) path = LETTERS[came[cell] - 1] + path;
    return path;
  }

  walkTo(cell) {
    return this.pathIn(this.walks(this.player), cell);
  }

  // Breadth first over (box, side the player stands on): the fewest pushes from here to every cell in reach. Returns a
  // map from target cell to the last push of the way there, which knows the push before it: `route` tells its letters.
  routes(box) {
    const found = new Map(), seen = new Uint8Array(this.near.length);
    const queue = [{ to: box, player: this.player, before: null }];
    for (const push of queue) {
      const sides = this.near.subarray(push.to * 4, push.to * 4 + 4);
      // All around a box is mostly a few steps away, and seldom the other end of the board.
      const came = this.walks(push.player, box, push.to, Array.from(sides).filter((cell) => this.free(cell, box)));
      sides.forEach((ahead, side) => {
        if (!this.free(ahead, box) || !came[sides[side ^ 2]] || seen[ahead * 4 + side]) return;
        seen[ahead * 4 + side] = 1;
        const next = { to: ahead, player: push.to, letter: LETTERS[side], before: push };
        if (!found.has(ahead) && ahead !== box) found.set(ahead, next);
        queue.push(next);
      });
    }
    return found;
  }

  route(box, push) {
    let letters = "";
    for (; push.before; push = push.before) {
      const { to, player } = push.before, behind = to - this.offsets[push.letter];
      const came = this.walks(player, box, to, [behind]);
      letters = this.pathIn(came, behind) + push.letter.toUpperCase() + letters;
    }
    return letters;
  }
}
