// What the browser keeps: the collection, best solutions, and what was on the table.

const PREFIX = "maskoban.";
const listeners = new Set();

export function recall(key, otherwise) {
  try {
    return JSON.parse(localStorage.getItem(PREFIX + key)) ?? otherwise;
  } catch {
    return otherwise;
  }
}

export function keep(key, value) {
  try {
    localStorage.setItem(PREFIX + key, JSON.stringify(value));
    return true;
  } catch {
    return false; // full, or forbidden by the browser
  }
}

export const collection = {
  all: () => recall("collection", []),
  onChange: (listener) => listeners.add(listener),
  save(boards) {
    const kept = keep("collection", boards);
    for (const listener of listeners) listener();
    return kept;
  },
  // The same board twice is one board.
  add(board, title) {
    const boards = this.all();
    if (boards.some((each) => each.board === board)) return false;
    return this.save([...boards, { board, title: title || `Board ${boards.length + 1}`, added: Date.now() }]);
  },
  rename(board, title) {
    this.save(this.all().map((each) => (each.board === board ? { ...each, title } : each)));
  },
  remove(board) {
    this.save(this.all().filter((each) => each.board !== board));
  },
};

const pushesOf = (lurd) => lurd.replace(/[a-z]/g, "").length;

export const best = {
  of: (board) => recall("best", {})[board] ?? null,
  // Fewer pushes are better; with as many, fewer moves.
  offer(board, lurd) {
    const all = recall("best", {}), old = all[board];
    const better = !old || pushesOf(lurd) - pushesOf(old) || lurd.length - old.length;
    if (better !== true && better >= 0) return false;
    all[board] = lurd;
    return keep("best", all);
  },
};

// Another window of the same browser changed something.
addEventListener("storage", (event) => {
  if (event.key === `${PREFIX}collection`) for (const listener of listeners) listener();
});
