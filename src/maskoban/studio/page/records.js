// Statistics, the daily board and what one shares of a win. All of it stays in this browser.

import { generate } from "./api.js";
import { plural } from "./dom.js";
import { keep, recall } from "./store.js";

const DAY = 86_400_000;

// A date in local time as 2026-11-18.
export const dateOf = (time = Date.now()) => new Date(time - new Date(time).getTimezoneOffset() * 60_000).toISOString().slice(0, 10);

// The daily board is the first solvable one of the seed that the date spells: the same for everybody.
export async function dailyBoard(date, signal) {
  const known = recall("daily", null);
  if (known?.date === date) return known;
  const seed = Number(date.replaceAll("-", ""));
  for await (const event of generate({ count: 1, seed, only_solvable: true }, signal))
    if (event.type === "judged" && event.kept) {
      const daily = { date, board: event.board, title: `Daily ${date}` };
      if (date === dateOf()) keep("daily", daily);
      return daily;
    }
  throw new Error(`No solvable board was found for ${date}.`);
}

const EMPTY = { solved: 0, par: 0, seconds: 0, words: {}, days: {} };
export const stats = () => ({ ...EMPTY, ...recall("stats", {}) });

// A board counts once, when it is first solved; the daily board counts for the streak on its own day.
export function recordWin({ first, atPar, seconds, word, date, pushes }) {
  const now = stats();
  if (first) {
    now.solved += 1;
    now.par += atPar ? 1 : 0;
    now.seconds += seconds;
    if (word) now.words = { ...now.words, [word]: (now.words[word] ?? 0) + 1 };
  }
  if (date === dateOf() && !(now.days[date] <= pushes)) now.days = { ...now.days, [date]: pushes };
  keep("stats", now);
}

// Days in a row that end today or yesterday, and the longest row there was.
export function streaks(days, today = dateOf()) {
  const numbers = Object.keys(days).map((date) => Date.parse(date) / DAY).sort((a, b) => a - b);
  let longest = 0, row = 0, last = null;
  for (const number of numbers) {
    row = number - 1 === last ? row + 1 : 1;
    longest = Math.max(longest, row);
    last = number;
  }
  return { current: last !== null && Date.parse(today) / DAY - last <= 1 ? row : 0, longest };
}

export function clock(seconds) {
  const two = (number) => String(number).padStart(2, "0"), minutes = Math.floor(seconds / 60);
  const rest = two(seconds % 60);
  return minutes < 60 ? `${minutes}:${rest}` : `${Math.floor(minutes / 60)}:${two(minutes % 60)}:${rest}`;
}

// "12 pushes, par 12"
export const score = (pushes, par) => [plural(pushes, "push", "pushes"), par === null ? "" : `par ${par}`].filter(Boolean).join(", ");

// What one shares: how it went, and where the board is; nothing of how it is solved.
export function shareText({ title, date, pushes, par, moves, seconds, link }) {
  const name = date ? `maskoban daily ${date}` : `maskoban${title ? ` · ${title}` : ""}`;
  const streak = date ? streaks(stats().days).current : 0;
  const row = streak > 1 ? ` · ${streak} days in a row` : "";
  return `${name}\n${score(pushes, par)} · ${plural(moves, "move")} · ${clock(seconds)}${row}\n${link}`;
}
