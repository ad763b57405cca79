// What the browser keeps: the collection, best solutions, games, statistics, and what was on the table.

import { standard } from "./board.js";

const PREFIX = "maskoban.";
export const FULL = "The storage of this browser is full: nothing was kept.";
const listeners = new Set();
const changed = () => listeners.forEach((listener) => listener());

// Called when the collection or a best solution has changed, here or in another window.
export const onStored = (listener) => listeners.add(listener);

// Even to name a storage is forbidden where the browser keeps nothing of this page.
const local = () => localStorage;
export const session = () => sessionStorage;

export function recall(key, otherwise, storage = local) {
  try {
    return JSON.parse(storage().getItem(PREFIX + key)) ?? otherwise;
  } catch {
    return otherwise;
  }
}

export function keep(key, value, storage = local) {
  try {
    storage().setItem(PREFIX + key, JSON.stringify(value));
    return true;
  } catch {
    return false; // full, or forbidden by the browser
  }
}

// What is on the table is each window's own; a new window begins with what was last on any.
export const table = {
  recall: (key) => recall(key, null, session) ?? recall(key, null),
  keep(key, value) {
    keep(key, value, session);
    keep(key, value);
  },
};

export const collection = {
  all: () => recall("collection", []),
  save(boards) {
    const kept = keep("collection", boards);
    changed();
    return kept;
  },
  // How many of these were new (the same board twice is one board), or null where there is no room for them.
  add(levels) {
    const boards = this.all(), before = boards.length;
    const known = new Set(boards.map((each) => each.board)), titles = new Set(boards.map((each) => each.title));
    let number = 1;
    for (const { board: text, title, author, comment, judgement } of levels) {
      const board = standard(text);
      if (known.has(board)) continue;
      while (titles.has(`Board ${number}`)) number += 1;
      const named = title || `Board ${number}`;
      boards.push({ board, title: named, author: author || undefined, comment: comment || undefined, judgement, added: Date.now() });
      known.add(board);
      titles.add(named);
    }
    const added = boards.length - before;
    return !added || this.save(boards) ? added : null;
  },
  // Whoever renames a board sees the new name already; false where there is no room for it.
  rename(board, title) {
    return keep("collection", this.all().map((each) => (each.board === board ? { ...each, title } : each)));
  },
  // Stores the solver's judgements, by board.
  judge(judgements) {
    const told = (each) => (judgements.has(each.board) ? { ...each, judgement: judgements.get(each.board) } : each);
    return keep("collection", this.all().map(told));
  },
  // Takes a board out, and returns what puts it back in its place.
  remove(board) {
    const boards = this.all(), place = boards.findIndex((each) => each.board === board);
    const taken = boards.splice(place, 1);
    this.save(boards);
    return () => this.all().some((each) => each.board === board) || this.save(this.all().toSpliced(place, 0, ...taken));
  },
};

export const pushesOf = (lurd) => lurd.replace(/[a-z]/g, "").length;

// Fewer pushes are better; with as many, fewer moves.
const beats = (lurd, old) => !old || (pushesOf(lurd) - pushesOf(old) || lurd.length - old.length) < 0;

// The game of every board, each under its own key, so that a move writes little.
const GAME = `${PREFIX}game.`, MAX_GAMES = 500;

export const games = {
  of: (board) => recall(`game.${board}`, null),
  keep: (board, game) => keep(`game.${board}`, { ...game, used: Date.now() }),
  // Of too many games the oldest go; best solutions stay.
  prune() {
    try {
      const keys = Object.keys(local()).filter((key) => key.startsWith(GAME));
      if (keys.length <= MAX_GAMES) return;
      const used = new Map(keys.map((key) => [key, JSON.parse(localStorage.getItem(key)).used ?? 0]));
      for (const key of keys.sort((a, b) => used.get(a) - used.get(b)).slice(0, -MAX_GAMES)) localStorage.removeItem(key);
    } catch {
      // no storage
    }
  },
};

export const best = {
  all: () => recall("best", {}),
  of: (board) => best.all()[board] ?? null,
  // The fewest moves of any solution, which may have more pushes.
  moves: (board) => recall("moves", {})[board] ?? null,
  offerMoves(board, moves) {
    const all = recall("moves", {});
    if (!(all[board] <= moves)) keep("moves", { ...all, [board]: moves });
  },
  // Pairs of a board and a solution of it; true if one is better than what was known, null where there is no room for it.
  offer(solutions) {
    const all = best.all();
    let better = false;
    for (const [text, lurd] of solutions) {
      const board = standard(text);
      if (beats(lurd, all[board])) (all[board] = lurd), (better = true);
    }
    if (!better) return false;
    if (!keep("best", all)) return null;
    changed();
    return true;
  },
};

addEventListener("storage", (event) => {
  if ([`${PREFIX}collection`, `${PREFIX}best`].includes(event.key)) changed();
});
