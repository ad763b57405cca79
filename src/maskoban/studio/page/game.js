// The rules: walking, pushing, going back and forth in time, and the shortest ways to do what a click asks for.

import { BOX, BOX_ON_GOAL, FLOOR, GOAL, PLAYER, PLAYER_ON_GOAL, WALL, has } from "./board.js";

const LETTERS = "lurd";

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
  }

  get playable() {
    return this.start.cells.filter(has.player).length === 1 && this.boxes.some(Boolean);
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
    const cells = this.start.cells.map((_, cell) => {
      if (this.walls[cell]) return WALL;
      if (this.boxes[cell]) return this.goals[cell] ? BOX_ON_GOAL : BOX;
      if (cell === this.player) return this.goals[cell] ? PLAYER_ON_GOAL : PLAYER;
      return this.goals[cell] ? GOAL : FLOOR;
    });
    return { ...this.start, cells };
  }

  // The cell one step away, or -1 beyond the edge, which acts as a wall.
  next(cell, letter) {
    const { width } = this.start, there = cell + this.offsets[letter];
    const wraps = (letter === "l" && cell % width === 0) || (letter === "r" && there % width === 0);
    return wraps || there < 0 || there >= this.walls.length ? -1 : there;
  }
  free(cell) {
    return cell >= 0 && !this.walls[cell] && !this.boxes[cell];
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
    if (!remembered && this.moves[this.at] !== done) this.moves = this.played + done;
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
  goTo(at) {
    while (this.at > at && this.undo());
    while (this.at < at && this.redo());
  }

  // Shortest walks from a cell with the boxes as they are: for each cell the letter that leads to it.
  walks(from, boxAt = -1, boxWas = -1) {
    const came = new Map([[from, ""]]), queue = [from];
    const open = (cell) => cell >= 0 && !this.walls[cell] && cell !== boxAt && (!this.boxes[cell] || cell === boxWas);
    for (const cell of queue)
      for (const letter of LETTERS) {
        const there = this.next(cell, letter);
        if (open(there) && !came.has(there)) came.set(there, letter), queue.push(there);
      }
    return came;
  }
  pathIn(came, to) {
    let path = "";
    for (let cell = to; came.get(cell); cell -= this.offsets[came.get(cell)]) path = came.get(cell) + path;
    return path;
  }

  walkTo(cell) {
    const came = this.walks(this.player);
    return came.has(cell) ? this.pathIn(came, cell) : null;
  }

  // Breadth first over (box, side the player stands on): the fewest pushes from here to every cell in reach.
  // Returns a map from target cell to the whole route in letters.
  routes(box) {
    const seen = new Set(), found = new Map(), queue = [{ box, player: this.player, route: "" }];
    for (const state of queue) {
      const came = this.walks(state.player, state.box, box);
      for (const letter of LETTERS) {
        const ahead = this.next(state.box, letter), behind = state.box - this.offsets[letter];
        if (ahead < 0 || this.walls[ahead] || (this.boxes[ahead] && ahead !== box)) continue;
        if (this.next(behind, letter) !== state.box || !came.has(behind)) continue;
        const key = ahead * 4 + LETTERS.indexOf(letter);
        if (seen.has(key)) continue;
        seen.add(key);
        const route = state.route + this.pathIn(came, behind) + letter.toUpperCase();
        if (!found.has(ahead) && ahead !== box) found.set(ahead, route);
        queue.push({ box: ahead, player: state.box, route });
      }
    }
    return found;
  }
}
