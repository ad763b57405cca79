// A link that carries a board in its address, after the #, so that no server ever sees it.

import { parse } from "./board.js";

const page = () => location.href.split(/[?#]/)[0];

export const dailyLink = (date) => `${page()}#/daily/${date}`;

export function linkTo(board) {
  const runs = board.replace(/ /g, "-").replace(/\n/g, "|").replace(/(.)\1{2,}/g, (run, letter) => run.length + letter);
  const code = btoa(runs).replace(/\+/g, "-").replace(/\//g, "_").replace(/=/g, "");
  return `${page()}#board=${code}`;
}

export function boardIn(hash) {
  const code = hash.match(/^#board=([\w-]+)$/)?.[1];
  if (!code || code.length > 12_000) return null;
  try {
    const runs = atob(code.replace(/-/g, "+").replace(/_/g, "/"));
    const text = runs.replace(/(\d{1,2})(\D)/g, (_, count, letter) => letter.repeat(Number(count)));
    parse(text.replace(/\|/g, "\n"));
    return text.replace(/\|/g, "\n").replace(/-/g, " ");
  } catch {
    return null;
  }
}
