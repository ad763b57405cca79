// Level files: XSB, .sok and .slc are read and written as boards/formats does it, which explains the rules.
// A level is { board, title, author, comment, solutions }. The reader is the lenient one without its warnings: a level
// that cannot be read is skipped. What is known about a collection, the names of solutions and saved games are left out.

const MAX_SIDE = 64;
const [MAX_TEXT, MAX_MOVES, MAX_SOLUTIONS, MAX_LINE, MAX_NOTES] = [100_000, 100_000, 20, 200_000, 4_000_000];
const MOVES_A_LINE = 100;
const [MAX_LEVELS, MAX_LETTERS] = [10_000, 4_000_000]; // of one file, as at the server

export class LevelError extends Error {}

function fail(problem, line, column) {
  const where = [line && `line ${line}`, column && `column ${column}`].filter(Boolean).join(", ");
  throw new LevelError(where ? `${where}: ${problem}` : problem);
}

const shown = (letter) => (letter === "'" ? `"'"` : `'${letter}'`);

function noTile(letter) {
  if (letter === "\t") return "a tab inside a board, whose width is unknown; expected spaces, - or _";
  return `${shown(letter)} is no tile; expected one of # @ $ . * + ? or floor (space, - or _)`;
}

// --- boards ---

const ROW = /^[-#@$.*+?_ ]*$/;

// The board of these rows as Python's Level writes it: no floor at the end of a row, unless that would lose a cell.
export function boardText(rows, line = 1) {
  const width = Math.max(0, ...rows.map((row) => row.length));
  if (!width) fail("an empty board; expected rows of # @ $ . * + and floor", line);
  if (rows.length > MAX_SIDE) fail(`a board of more than ${MAX_SIDE} rows; expected at most ${MAX_SIDE}`, line + MAX_SIDE);
  for (const [r, row] of rows.entries()) {
    const column = row.search(/[^-#@$.*+?_ ]/);
    if (column >= 0) fail(noTile(row[column]), line + r, column + 1);
    if (row.length > MAX_SIDE) fail(`a row of ${row.length} cells; expected at most ${MAX_SIDE}`, line + r, MAX_SIDE + 1);
  }
  const bare = rows.map((row) => row.replace(/[-_]/g, " ").replace(/ +$/, ""));
  if (Math.max(...bare.map((row) => row.length)) < width) bare[0] = bare[0].padEnd(width).replaceAll(" ", "-");
  return bare.map((row) => row || "-".repeat(width)).join("\n");
}

function level(board, title = "", author = "", comment = "", solutions = []) {
  const oneLine = (name, text) => {
    if (text.trim().includes("\n")) throw new LevelError(`a level's ${name} is one line, not ${text.split("\n").length}`);
    return printable(name, text.trim());
  };
  const lines = comment.replaceAll("\r\n", "\n").split("\n").map((line) => line.trimEnd()).join("\n").replace(/^\n+|\n+$/g, "");
  printable("comment", lines.replaceAll("\n", " "));
  const kept = solutions.filter((moves) => moves);
  if (kept.length > MAX_SOLUTIONS) throw new LevelError(`${kept.length} solutions of one level; expected at most ${MAX_SOLUTIONS}`);
  for (const moves of kept) {
    if (moves.length > MAX_MOVES) throw new LevelError(`a solution of ${moves.length} moves; expected at most ${MAX_MOVES}`);
    const wrong = moves.search(/[^lurdLURD]/);
    if (wrong >= 0)
      throw new LevelError(`${shown(moves[wrong])} is no move (step ${wrong + 1} of a solution); expected one of lurdLURD`);
  }
  return { board, title: oneLine("title", title), author: oneLine("author", author), comment: lines, solutions: kept };
}

function printable(name, text) {
  if (text.length > MAX_TEXT) throw new LevelError(`a level's ${name} of ${text.length} characters; expected at most ${MAX_TEXT}`);
  const control = text.match(/[\u0000-\u0008\u000a-\u001f\u007f-\u009f\ufffe\uffff]/);
  if (control) {
    const code = control[0].charCodeAt(0).toString(16).toUpperCase().padStart(4, "0");
    throw new LevelError(`the control character U+${code} in a level's ${name}; expected text`);
  }
  return text;
}

// What a level's own checks find, with the line of its board.
function checked(line, make) {
  try {
    return make();
  } catch (error) {
    if (!(error instanceof LevelError) || error.message.startsWith("line ")) throw error;
    return fail(error.message, line);
  }
}

// --- lines of text: formats/lines.py ---

const ENCODED = /^(?:[0-9]+[-#@$.*+?_]|[-#@$.*+?_ |])+$/;
const WRONG = /[^-#@$.*+?_ |0-9]|[0-9](?=\||$)/;
const OTHER_TILES = '; for files with other letters: maskoban convert --tiles "wall=x,box=o,player=y"';
const [MAX_CONTROLS, MAX_WRONG_LETTERS] = [16, 4];
const CONTROL = /[\u0000-\u0008\u000a-\u001f\u007f-\u009f\ufffe\uffff]/;
const MAX_RUN = 200; // moves of one run length

function isRow(line) {
  if (ROW.test(line)) return line.trim() !== "";
  if (line.trimStart().startsWith("|") || line.includes(" | ")) return false; // the row of a table
  return (line.includes("#") || (line.includes("|") && /[-#@$.*+?_ ]/.test(line))) && ENCODED.test(line);
}

// Whether rows are a board and no text: a player beside a wall, a box or MASK, or a closed frame.
function isDrawn(rows) {
  const text = rows.join("");
  if (text.includes("@") && text.match(/[@+]/g).length === 1) return text.length > 2 && /[#$?]/.test(text);
  if (!/[$?]/.test(text) || rows.length < 2) return false;
  return rows.map(bareEnds).every((row) => !row || (row.length > 1 && "#?".includes(row[0]) && "#?".includes(row.at(-1))));
}

function bareEnds(row) {
  let [start, end] = [0, row.length];
  while (start < end && " -_".includes(row[start])) start++;
  while (end > start && " -_".includes(row[end - 1])) end--;
  return row.slice(start, end);
}

const endWord = (line) => line.trim().replace(/:$/, "").trimEnd().toLowerCase();
const isCommentEnd = (line) => ["comment-end", "comment_end", "comment end"].includes(endWord(line));
const beginsComment = (line) => line.trimStart().toLowerCase().startsWith("comment:");
const isHeading = (line, word) => line.trim().endsWith(":") && line.trim().slice(0, -1).trimEnd().toLowerCase() === word;
const isFramed = (text) => text.length > 1 && text[0] === "#" && text.at(-1) === "#";

// What a strict reader takes for a row; a title that looks like one does not stand above a board.
function isMeantAsRow(line) {
  const text = line.trim();
  return text.startsWith("##") || isFramed(text);
}

function withoutSemicolon(line) {
  const bare = line.trimStart();
  return bare.startsWith(";") ? [bare.slice(1).replace(/^ /, ""), ";"] : [line, "plain"];
}

// The error that `make` throws, or null.
function problemOf(make) {
  try {
    make();
    return null;
  } catch (error) {
    if (error instanceof LevelError) return error;
    throw error;
  }
}

// `text` without run lengths: 3#2-$ is ###--$.
function expand(text, limit, what, line, column = 1) {
  if (text.length <= limit && !/[0-9]/.test(text)) return text;
  let out = "", total = 0;
  for (const run of text.matchAll(/([0-9]*)([^0-9])/g)) {
    const count = run[1].length > 9 ? limit + 1 : Number(run[1] || 1);
    total += count;
    if (count > MAX_RUN && MAX_RUN < limit) fail(`a run of more than ${MAX_RUN} ${what}`, line, column + run.index);
    if (total > limit) fail(`more than ${limit} ${what}`, line, column + run.index);
    out += run[2].repeat(count);
  }
  return out;
}

// Where the rows of a board begin and end, if lines like ----- are drawn above and below it.
function withoutRulers(rows) {
  let [start, end] = [0, rows.length];
  if (!end || (rows[0].includes("#") && rows.at(-1).includes("#"))) return [start, end];
  const isUniform = (row) => row === row[0].repeat(row.length);
  const width = Math.max(0, ...rows.filter((row) => !isUniform(row)).map((row) => row.length));
  const isRuler = (row) =>
    (row.length > width || ("-_".includes(row[0]) && row.length < width)) && row.length > 2 && !"#?".includes(row[0]) && isUniform(row);
  while (start < end && isRuler(rows[start])) start++;
  while (start < end && isRuler(rows[end - 1])) end--;
  return [start, end];
}

// What lines of tiles are: a board, perhaps with rulers around it, or text after all.
function piecesOf(run, first, mark) {
  const [start, end] = mark.length ? [0, run.length] : withoutRulers(run);
  const board = start < end ? boardOf(run.slice(start, end), first + start, mark.length > 0) : null;
  const lines = run.map((text, k) => ({ line: first + k, text, kind: "plain", belowBoard: false, blank: !text.trim() }));
  return board ? [...lines.slice(0, start), board, ...lines.slice(end)] : [...mark, ...lines];
}

// Rows without the tabs before and behind all of them.
function withoutTabs(run) {
  const tabs = Math.min(...run.map((line) => line.length - line.replace(/^\t+/, "").length));
  return run.map((line) => line.slice(tabs).replace(/\t+$/, ""));
}

// The board that lines draw: { line, rows, problem }, or null if they are text after all.
function boardOf(run, first, marked) {
  if (!run.every((line) => ROW.test(line)) && run.some((line) => line.includes("@"))) run = withoutTabs(run);
  const wrong = run.findIndex((line) => !isRow(line));
  if (wrong >= 0) {
    const letters = new Set(run.flatMap((line) => line.match(new RegExp(WRONG, "g")) ?? []));
    if (run.length < 2 || letters.size > MAX_WRONG_LETTERS) return null;
    const column = run[wrong].search(WRONG), letter = String.fromCodePoint(run[wrong].codePointAt(column));
    const problem = noTile(letter) + (letter === "\t" ? "" : OTHER_TILES);
    return { line: first, rows: [], problem: problemOf(() => fail(problem, first + wrong, column + 1)) };
  }
  const plain = run.every((line) => ROW.test(line));
  let drawn = marked || isDrawn(run), rows = run;
  const problem = problemOf(() => {
    if (!plain) {
      rows = [];
      for (const [i, line] of run.entries()) {
        let column = 1;
        for (const row of line.replace(/\|$/, "").split("|")) {
          rows.push(expand(row, MAX_SIDE, "cells in a row", first + i, column));
          column += row.length + 1;
        }
      }
      drawn ||= isDrawn(rows);
    }
    if (rows.length > MAX_SIDE) fail(`more than ${MAX_SIDE} rows in a board`, plain ? first + MAX_SIDE : first, 1);
    for (const [i, row] of rows.entries())
      if (row.length > MAX_SIDE) fail(`more than ${MAX_SIDE} cells in a row`, first + i, MAX_SIDE + 1);
  });
  return drawn ? { line: first, rows, problem } : null;
}

// The lines of a comment from line i on, as notes, and the line after it. Without an end it ends at the end of the
// file, or where a board follows a blank line.
function commentFrom(lines, i, kind, problems) {
  const notes = [], note = (at, text) => ({ line: at + 1, text, kind: "comment", belowBoard: false, blank: false });
  if (kind === ";") {
    for (; i < lines.length; i++) {
      const [text, kind] = withoutSemicolon(lines[i]);
      if (kind === "plain") return [notes, i];
      if (isCommentEnd(text)) return [notes, i + 1];
      notes.push(note(i, text));
    }
    return [notes, i];
  }
  let run = [], board = null, at = i;
  for (; at < lines.length && !isCommentEnd(lines[at]); at++) {
    const line = lines[at];
    if (board === null) {
      if (isRow(line)) {
        run.push(line);
        continue;
      }
      if (isDrawn(run)) board = at - run.length;
      run = [];
    }
    if (board !== null && beginsComment(line)) break;
  }
  const ended = at < lines.length && isCommentEnd(lines[at]);
  if (!ended && board === null && isDrawn(run)) board = at - run.length;
  if (!ended) problems.push(problemOf(() => fail("a comment without an end; expected a line Comment-End:", i)));
  const end = !ended && board !== null ? i + aboveBlock(lines.slice(i, board)) : at;
  for (let k = i; k < end; k++) notes.push(note(k, lines[k]));
  return [notes, ended ? at + 1 : end];
}

// Where a comment without an end ends: above the lines that belong to the board below; else at the board.
function aboveBlock(above) {
  let start = above.length;
  while (start && above[start - 1].trim()) start--;
  let end = start || above.length;
  while (end && !above[end - 1].trim()) end--;
  return end;
}

// The letter a line consists of, if it may be a wall; below such a wall, a row is an error of its file.
function otherWall(line, wall, number, problems) {
  const bare = line.trim();
  if (bare.length < 3) return "";
  if (wall && bare[0] === wall && bare.at(-1) === wall)
    problems.push(problemOf(() => fail(noTile(wall) + OTHER_TILES, number, line.indexOf(wall) + 1)));
  return /[\p{L}\p{N}]/u.test(bare[0]) && bare === bare[0].repeat(bare.length) ? bare[0] : "";
}

// Boards { line, rows, problem } and notes { line, text, kind, belowBoard, blank } in order.
function* boardsAndNotes(lines, problems) {
  let run = [], mark = [], wall = "", controls = 0, i = 0;
  const note = (line, text, kind, belowBoard = false) => ({ line, text, kind, belowBoard, blank: !text.trim() });
  lines = lines.map((line, at) => {
    if (line.length > MAX_LINE) fail(`a line of more than ${MAX_LINE} characters`, at + 1, MAX_LINE + 1);
    for (let column; (column = line.search(CONTROL)) >= 0; ) {
      const code = line.charCodeAt(column).toString(16).toUpperCase().padStart(4, "0");
      const problem = `the control character U+${code}; expected text, XML or .npz`;
      if (++controls > MAX_CONTROLS) fail(problem, at + 1, column + 1);
      problems.push(problemOf(() => fail(problem, at + 1, column + 1)));
      line = `${line.slice(0, column)}\ufffd${line.slice(column + 1)}`;
    }
    return line;
  });
  // A run of lines of tiles ended above line i.
  const finished = function* () {
    const pieces = piecesOf(run, i - run.length + 1, mark);
    yield* pieces;
    [run, mark] = [[], []];
    if (pieces.some((piece) => piece.rows)) wall = null;
    return pieces.at(-1)?.rows !== undefined;
  };
  for (; i < lines.length; i++) {
    const line = lines[i], [text, kind] = withoutSemicolon(line);
    if (kind === "plain" && (isRow(line) || (isFramed(line.trim()) && WRONG.test(line)))) {
      run.push(line);
      continue;
    }
    const belowBoard = yield* finished();
    if (wall !== null) wall = otherWall(line, wall, i + 1, problems);
    if (isHeading(text, "comment")) {
      const [notes, next] = commentFrom(lines, i + 1, kind, problems);
      yield* notes;
      i = next - 1;
    } else if (isHeading(text, "board")) mark = [note(i + 1, text, kind, belowBoard)];
    else if (!line.startsWith("::") && !isCommentEnd(text)) yield note(i + 1, text, kind, belowBoard);
  }
  yield* finished();
}

// --- text files: formats/text.py ---

const KEY = /^(title|author|comment|solution|collection|set|e-?mail)\s*[:=]\s?(.*)$/i;
const HEADING = /^(?:best )?(solution|saved? ?game|snapshot)(?:[ /(:#0-9-].*)?$/i;
const MOVES = /^(?:[0-9]*[lurd]\s*)+$/i;
const BARE_MOVES = /^[lurd]{10,}$/i;
const PUSH = /(?<=.)[LURD]/;
const NUMBER = /^(?:level|maze|puzzle|no|nr)?[ .#:]{0,3}[0-9]{1,9}\.?$/i;
const WORD = /[\p{L}\p{N}_]/u;
const LOOK_AHEAD = 100;
const isSpecial = (text) => [KEY, HEADING, BARE_MOVES].some((pattern) => pattern.test(text.trim()));
const hasTitle = (notes) => notes.some((note) => keyAndValue(note)[0] === "title" && keyAndValue(note)[1]);
const isLine = (block) =>
  block.length === 1 && block[0].kind !== "comment" && WORD.test(block[0].text) && !isSpecial(block[0].text);

// The key a line begins with, and what it says.
function keyAndValue(note) {
  const found = note.kind !== "comment" && note.text.trimStart().match(KEY);
  return found ? [found[1].toLowerCase(), found[2].trimEnd()] : ["", ""];
}

// Whether the first line of a block, below any ruler, is a number like Maze: 1.
function isNumbered(block) {
  const first = block.find((note) => WORD.test(note.text));
  return first !== undefined && first.kind !== "comment" && NUMBER.test(first.text.trim());
}

// The solution or saved game that begins at note i: { kind, lines, end }, or null.
function playAt(notes, i) {
  const text = notes[i].text.trim(), key = text.match(KEY), lines = [];
  if (notes[i].kind === "comment") return null;
  let kind = text.match(HEADING)?.[1].toLowerCase();
  if (key?.[1].toLowerCase() === "solution" && MOVES.test(key[2].trim())) {
    kind = "solution";
    lines.push([key[2], notes[i].line]);
  } else if (BARE_MOVES.test(text)) {
    kind = "solution";
    lines.push([text, notes[i].line]);
  } else if (!kind) return null;
  let end = i + 1;
  if (!lines.length && end + 1 < notes.length && notes[end].blank && PUSH.test(notes[end + 1].text.trim())) end++;
  for (; end < notes.length && notes[end].kind !== "comment" && MOVES.test(notes[end].text.trim()); end++)
    lines.push([notes[end].text, notes[end].line]);
  return lines.length ? { kind: kind === "solution" ? kind : "savegame", lines, end } : null;
}

class LevelText {
  title = "";
  author = "";
  comment = [];
  plays = { solution: [], savegame: [] };

  level(board, author) {
    return checked(board.line, () =>
      level(boardText(board.rows, board.line), this.title, this.author || author, this.comment.join("\n"), this.plays.solution));
  }

  add(notes, above, problems) {
    let free = null;
    const touches = notes.length > 0 && !notes.at(-1).blank;
    for (let i = 0; i < notes.length; ) {
      const note = notes[i++], play = playAt(notes, i - 1);
      if (play) {
        i = play.end;
        const problem = problemOf(() => {
          if (this.plays[play.kind].length === MAX_SOLUTIONS)
            fail(`more than ${MAX_SOLUTIONS} ${play.kind}s of one level`, note.line);
          this.plays[play.kind].push(writtenOut(play));
        });
        if (problem) problems.push(problem);
        continue;
      }
      const [key, value] = keyAndValue(note);
      if (note.blank) {
        if (this.comment.at(-1)) this.comment.push("");
      } else if (["title", "author"].includes(key) && !value) continue;
      else if (key === "title" && (!this.title || NUMBER.test(this.title))) this.title = value;
      else if (key === "author" && !this.author) this.author = value;
      else if (key === "comment") this.comment.push(value);
      else if (note.belowBoard && note.kind === ";" && !key && !this.title) this.title = note.text;
      else {
        if (note.kind !== "comment" && !key && (free === null || touches) && WORD.test(note.text)) free = this.comment.length;
        this.comment.push(note.text);
      }
    }
    if (above && free !== null && !this.title) this.title = this.comment.splice(free, 1)[0];
  }
}

function writtenOut({ lines }) {
  let moves = "";
  for (const [text, line] of lines) {
    moves += expand(text.replace(/\s+/g, ""), MAX_MOVES, "moves in a solution", line);
    if (moves.length > MAX_MOVES) fail(`more than ${MAX_MOVES} moves in a solution`, line);
  }
  return moves;
}

// Where the last lines without a blank one between them begin and end.
function lastBlock(gap) {
  let end = gap.length;
  while (end && gap[end - 1].blank) end--;
  let start = end;
  while (start && !gap[start - 1].blank) start--;
  return [start, end];
}

// Where the part of a block above a board ends that surely is not about it: solutions, or all keys.
function endOfUpper(block, keys) {
  let end = 0;
  for (let i = 0; i < block.length; ) {
    const play = playAt(block, i);
    if (play) i = end = play.end;
    else if (keys && (block[i].kind === "comment" || keyAndValue(block[i])[0])) end = ++i;
    else i++;
  }
  return end;
}

// The text between two boards: what belongs to the upper board, and what to the lower one.
function split(gap, below, bare) {
  const [start, end] = lastBlock(gap), block = gap.slice(start, end), played = endOfUpper(gap, false);
  const [touchesUpper, touchesLower] = [start === 0, end === gap.length];
  if (!block.length || played >= end || (played > start && !touchesLower)) return [gap, []];
  if (touchesLower) {
    let cut = Math.max(start, played);
    if (touchesUpper && below && hasTitle(block)) cut = endOfUpper(block, true);
    else if (touchesUpper && bare && block[0].kind === ";") cut = end;
    else if (touchesUpper) while (cut < end && gap[cut].kind === "comment") cut++;
    return [gap.slice(0, cut), gap.slice(cut)];
  }
  const mine = !touchesUpper && (hasTitle(block) ? !below : isLine(block) || isNumbered(block));
  return mine ? [gap.slice(0, start), gap.slice(start)] : [gap, []];
}

// The text above the first board: that of the collection, that of the board, and whether titles stand below boards.
function firstGap(notes, gaps) {
  const [start, end] = lastBlock(notes), block = notes.slice(start, end), touches = block.length > 0 && end === notes.length;
  if (!hasTitle(block)) {
    const mine = touches || isLine(block) || isNumbered(block);
    return mine ? [notes.slice(0, start), notes.slice(start), true] : [notes, [], true];
  }
  const below = titlesBelow(gaps);
  if (below || (below === null && gaps.length > 1 && !touches)) {
    const cut = start + endOfUpper(block, true);
    return [notes.slice(0, cut), notes.slice(cut), true];
  }
  return [notes.slice(0, start), block, below === null];
}

function titlesBelow(gaps) {
  let seen = false;
  for (const [i, [notes, board]] of gaps.slice(0, LOOK_AHEAD).entries()) {
    if (hasTitle(notes)) {
      seen = true;
      const [start, end] = lastBlock(notes), upper = start === 0, lower = end === notes.length;
      if (!board || !hasTitle(notes.slice(start, end)) || (upper && !lower)) return true;
      if (lower && !upper) return false;
    }
    if (!board) return seen ? false : null;
  }
  return seen ? true : null;
}

function* readText(content, problems) {
  const lines = content.replace(/^\ufeff/, "").split(/\r\n|\r|\n/).map((line) => line.replace(/[\x1a\f]+$/, ""));
  if (lines.at(-1) === "") lines.pop();
  const gaps = []; // the text above a board, and the board; null at the end
  let gap = [], letters = 0;
  for (const piece of boardsAndNotes(lines, problems)) {
    if (piece.rows) {
      gaps.push([gap, piece]);
      [gap, letters] = [[], 0];
    } else if (!(piece.blank && gap.at(-1)?.blank)) {
      gap.push(piece);
      letters += piece.text.length;
      if (letters > MAX_NOTES) fail("too much text between two boards", piece.line);
    }
  }
  gaps.push([gap, null]);
  const [notes, first] = gaps.shift();
  if (!first) return;
  let [header, above, below] = firstGap(notes, gaps), board = first;
  const bare = notes.every((note) => note.blank);
  const author = header.map(keyAndValue).find(([key, value]) => key === "author" && value)?.[1] ?? "";
  for (const [notes, next] of gaps) {
    const [upper, lower] = next ? split(notes, below, bare) : [notes, []];
    let made = null;
    const problem = problemOf(() => {
      const text = new LevelText();
      text.add(above, true, problems);
      text.add(upper, false, problems);
      if (board.problem) throw board.problem;
      made = text.level(board, author.trim());
    });
    if (problem) problems.push(problem);
    else yield made;
    [above, board] = [lower, next];
  }
}

function* writeText(levels, prefix) {
  const behind = (line) => (prefix ? `${prefix}${line}`.trimEnd() : line);
  for (const [i, each] of levels.entries()) {
    const above = [], below = [];
    if (each.title && canStandAbove(each.title)) above.push(each.title);
    else if (each.title) below.push(`Title: ${each.title}`);
    if (each.author) below.push(`Author: ${each.author}`);
    below.push(...commentLines(each.comment));
    for (const moves of each.solutions) below.push("Solution", ...(moves.match(new RegExp(`.{1,${MOVES_A_LINE}}`, "g")) ?? []));
    const drawn = each.board.split("\n"), [start, end] = withoutRulers(drawn);
    const rows = isDrawn(drawn) && end - start === drawn.length ? each.board : `${behind("Board:")}\n${each.board.replaceAll(" ", "-")}`;
    yield [...(i ? [""] : []), ...above.map(behind), rows, ...(below.length && !prefix ? [""] : []), ...below.map(behind)].join("\n") + "\n";
  }
}

function canStandAbove(title) {
  const special = /^(;|::|<|\ufeff)/.test(title) || isSpecial(title) || isCommentEnd(title);
  const heading = isHeading(title, "comment") || isHeading(title, "board");
  return !special && !heading && WORD.test(title) && !isRow(title) && !isMeantAsRow(title);
}

function* commentLines(comment) {
  if (!comment) return;
  yield "Comment:";
  for (const line of comment.split("\n"))
    if (isCommentEnd(line) || beginsComment(line)) yield* ["Comment-End:", `Comment: ${line}`, "Comment:"];
    else yield line;
  yield "Comment-End:";
}

// --- .slc: formats/xml.py ---

const ENTITIES = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'" };

// Start tags, end tags and texts of a document. Workers have no DOMParser, and a collection needs no more than this.
function* xmlPieces(content) {
  let at = 0, line = 1, start = 0; // start: of the line
  const advance = (to) => {
    for (let end; (end = content.indexOf("\n", at)) >= 0 && end < to; at = end + 1) line++, (start = end + 1);
    at = to;
  };
  const column = () => at - start + 1;
  const until = (end, what) => {
    const to = content.indexOf(end, at);
    if (to < 0) fail(`not well-formed XML: ${what} without an end`, line, column());
    return to;
  };
  const decoded = (text) =>
    text.replace(/&([^;&]*);?/g, (whole, name) => {
      const number = name.match(/^#(?:x([0-9a-fA-F]+)|([0-9]+))$/);
      if (number && whole.endsWith(";")) return String.fromCodePoint(number[1] ? parseInt(number[1], 16) : Number(number[2]));
      if (!Object.hasOwn(ENTITIES, name) || !whole.endsWith(";"))
        fail(`the unknown entity &${name};; expected &amp; &lt; &gt; &quot; or &apos;`, line, column());
      return ENTITIES[name];
    });
  while (at < content.length) {
    const where = [line, column()];
    if (content[at] !== "<") {
      const to = content.indexOf("<", at) < 0 ? content.length : content.indexOf("<", at);
      const text = decoded(content.slice(at, to));
      advance(to);
      yield { type: "text", text, where };
    } else if (content.startsWith("<!--", at)) advance(until("-->", "a comment") + 3);
    else if (content.startsWith("<?", at)) advance(until("?>", "an instruction") + 2);
    else if (content.startsWith("<![CDATA[", at)) {
      const to = until("]]>", "a CDATA section"), text = content.slice(at + 9, to);
      advance(to + 3);
      yield { type: "text", text, where };
    } else if (content.startsWith("<!", at)) {
      const to = until(">", "a declaration");
      if (content.slice(at, to).includes("[")) fail("a document type with declarations; expected none, for safety", line);
      advance(to + 1);
    } else {
      const tag = content.slice(at).match(/^<(\/?)([^\s<>/=]+)((?:\s+[^\s<>/=]+\s*=\s*(?:"[^<"]*"|'[^<']*'))*)\s*(\/?)>/);
      if (!tag) fail("not well-formed XML: not well-formed (invalid token)", line, column());
      const [whole, closes, name, rest, empty] = tag;
      const attributes = {};
      for (const [, key, quoted] of rest.matchAll(/([^\s=]+)\s*=\s*("[^"]*"|'[^']*')/g)) attributes[key] = decoded(quoted.slice(1, -1));
      const bare = name.slice(name.lastIndexOf(":") + 1);
      advance(at + whole.length);
      if (!closes) yield { type: "start", name: bare, attributes, where };
      if (closes || empty) yield { type: "end", name: bare, where };
    }
  }
}

// What an element is called in the XML of other programs, in small letters, and in .slc.
const NAMES = new Map(
  Object.entries({
    Level: "level puzzle maze", L: "l line row", Title: "title name", Author: "author copyright",
    Comment: "comment comments description note notes", Moves: "moves steps", Solution: "solution",
  }).flatMap(([name, others]) => others.split(" ").map((other) => [other, name])),
);

function* readSlc(content, problems) {
  const names = [], kinds = [], numbers = []; // of the open elements
  let text = "", where = [1, 1], named = "", open = null, author = "", root = false, started = 0;
  let others = false, play = null; // the XML of another program, and its open solution
  const opened = (line, title, author) => ({ line, title, author, parent: 0, rows: [], comment: [], solutions: [] });
  // The open level, if it is good.
  const finished = () => {
    const { line, title, rows, comment, solutions, author: by, problem: damage } = open;
    let made = null;
    open = null;
    const problem = problemOf(() => {
      if (damage) throw damage;
      if (others && !rows.length) fail("expected rows as elements <l>, <line> or <row>", line);
      const clean = (text) => text.replace(new RegExp(CONTROL, "g"), (letter) => (letter === "\n" ? letter : "\ufffd"));
      const texts = [title, by, comment.join("\n")].map(clean);
      made = checked(line, () => level(boardText(rows, line), ...texts, solutions));
    });
    if (problem) problems.push(problem);
    return made ? [made] : [];
  };
  const addMoves = (element, text, line) => {
    const moves = text.replace(/\s+/g, ""), wrong = moves.search(/[^lurdLURD]/);
    const what = element === "Solution" ? "solution" : "saved game";
    if (wrong >= 0) {
      const problem = `${shown(moves[wrong])} is no move (step ${wrong + 1} of a ${what}); expected one of lurdLURD`;
      problems.push(problemOf(() => fail(problem, line)));
      open.comment.push(`${element}: ${text}`);
    } else if (element === "Solution") open.solutions.push(moves);
  };
  for (const piece of xmlPieces(content.replace(/^\ufeff/, ""))) {
    if (piece.type === "text") {
      if (!names.length && piece.text.trim()) fail("not well-formed XML: text outside of the root element", ...piece.where);
      if (!text) where = piece.where;
      text += piece.text;
    } else if (piece.type === "start") {
      let { name, attributes } = piece;
      const [line] = piece.where;
      if (!names.length && root) fail("not well-formed XML: junk after document element", ...piece.where);
      if (!names.length && name !== "SokobanLevels") {
        problems.push(problemOf(() => fail(`a file of <${name.slice(0, 40)}>; expected <SokobanLevels>`, ...piece.where)));
        others = true;
      }
      root = true;
      if (others) {
        name = NAMES.get(name.toLowerCase()) ?? name;
        const given = new Map(Object.entries(attributes).map(([key, value]) => [key.toLowerCase(), value]));
        const own = given.get("name") ?? "", by = given.get("copyright") || given.get("author");
        attributes = { Id: given.get("title") || own || (given.get("id") ?? ""), Name: own, ...(by && { Copyright: by }) };
        if (!names.length) author = by ?? "";
        if (name === "L" && open) {
          // Rows inside of another element than those before are another level.
          if (open.rows.length && open.parent !== numbers.at(-1)) {
            const { title, author } = open;
            yield* finished();
            open = opened(line, title, author);
          }
          open.parent = numbers.at(-1);
        } else if (name === "Solution" && open) play = {};
      }
      if (name === "Level") {
        if (open) fail("a <Level> inside a <Level>; expected </Level>", ...piece.where);
        open = opened(line, attributes.Id ?? "", attributes.Copyright ?? author);
      } else if (name === "LevelCollection") author = attributes.Copyright ?? "";
      else if (name === "L" && !open && !others) fail("an <L> outside of a <Level>", ...piece.where);
      names.push(piece.name);
      kinds.push(name);
      numbers.push(++started);
      named = attributes.Name ?? "";
      text = "";
    } else {
      if (names.pop() !== piece.name) fail("not well-formed XML: mismatched tag", ...piece.where);
      const kind = kinds.pop();
      numbers.pop();
      if (others && kind === "Author" && !text.trim()) text = named;
      if (play && open) {
        if (["Moves", "Solution"].includes(kind) && text.trim()) play[kind] = text.trim();
        else if (kind === "Comment") open.comment.push(text);
        if (kind === "Solution") {
          addMoves(kind, play.Moves ?? play.Solution ?? "", piece.where[0]);
          play = null;
        }
      } else if (kind === "Level") yield* finished();
      else if (!open) {
        // Of what is known about the collection, its author is that of levels without one.
        if (kind === "Author" && text.trim() && !author) author = text.trim().replace(/\s*\n\s*/g, " ");
      } else if (kind === "L") {
        open.problem ??= problemOf(() => {
          if (open.rows.length === MAX_SIDE) fail(`more than ${MAX_SIDE} rows in a board`, ...piece.where);
          if (text.length > MAX_SIDE) fail(`a row of ${text.length} cells; expected at most ${MAX_SIDE}`, where[0], where[1] + MAX_SIDE);
          const column = text.search(/[^-#@$.*+?_ ]/);
          if (column >= 0) fail(noTile(text[column]), where[0], where[1] + column);
        });
        if (!open.problem) open.rows.push(text);
      } else if (kind === "Comment") open.comment.push(text);
      else if (["Solution", "Savegame"].includes(kind)) addMoves(kind, text, piece.where[0]);
      else if (others && kind === "Title") open.title ||= text.trim();
      else if (others && kind === "Author") open.author = text.trim() || open.author;
      text = "";
    }
  }
  if (names.length || !root) fail("not well-formed XML: no element found", content.split("\n").length);
}

const escaped = (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
function quoted(text) {
  const safe = escaped(text).replaceAll("\n", "&#10;").replaceAll("\r", "&#13;").replaceAll("\t", "&#9;");
  if (!safe.includes('"')) return `"${safe}"`;
  return safe.includes("'") ? `"${safe.replaceAll('"', "&quot;")}"` : `'${safe}'`;
}

function* writeSlc(levels) {
  yield '<?xml version="1.0" encoding="UTF-8"?>\n<SokobanLevels>\n  <Title></Title>\n  <Description></Description>\n  <LevelCollection>\n';
  for (const { board, title, author, comment, solutions } of levels) {
    const rows = board.split("\n"), width = Math.max(...rows.map((row) => row.length));
    const attributes = { Id: title, Width: String(width), Height: String(rows.length), ...(author && { Copyright: author }) };
    yield `    <Level${Object.entries(attributes).map(([name, text]) => ` ${name}=${quoted(text)}`).join("")}>\n`;
    for (const row of rows) yield `      <L>${row}</L>\n`;
    if (comment) yield `      <Comment>${escaped(comment)}</Comment>\n`;
    for (const moves of solutions) yield `      <Solution>${moves}</Solution>\n`;
    yield "    </Level>\n";
  }
  yield "  </LevelCollection>\n</SokobanLevels>\n";
}

// --- any file ---

// Text is UTF-8, or UTF-16 with its mark; a line that is not UTF-8, as in old collections, is Windows-1252.
function decode(bytes) {
  if ((bytes[0] === 0xff && bytes[1] === 0xfe) || (bytes[0] === 0xfe && bytes[1] === 0xff))
    return new TextDecoder(bytes[0] === 0xff ? "utf-16le" : "utf-16be").decode(bytes);
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    const lines = [];
    for (let start = 0, end; start <= bytes.length; start = end + 1) {
      end = bytes.indexOf(10, start);
      if (end < 0) end = bytes.length;
      const line = bytes.subarray(start, end);
      try {
        lines.push(new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(line));
      } catch {
        lines.push(new TextDecoder("windows-1252").decode(line));
      }
    }
    return lines.join("\n");
  }
}

export function readLevels(content) {
  if (typeof content !== "string") {
    const head = String.fromCharCode(...content.subarray(0, 6));
    if (head.startsWith("PK\x03\x04") || head === "\x93NUMPY")
      throw new LevelError("a NumPy file, which only maskoban itself reads; expected XSB, .sok or .slc");
    content = decode(content);
  }
  const levels = [], problems = [];
  let letters = 0;
  for (const each of (/^\ufeff?\s*</.test(content) ? readSlc : readText)(content, problems)) {
    if (levels.length === MAX_LEVELS) throw new LevelError("more than 10,000 levels; send fewer at a time");
    letters += each.board.length + each.comment.length + each.solutions.join("").length;
    if (letters > MAX_LETTERS) throw new LevelError("more than 4,000,000 letters once unpacked; send less at a time");
    levels.push(each);
  }
  if (!levels.length) throw problems[0] ?? new LevelError("no level in it; expected at least one board");
  return levels;
}

export function writeLevels(levels, format) {
  const whole = levels.map(({ board, title, author, comment, solutions }) =>
    level(boardText(board.split("\n")), title, author, comment, solutions));
  const write = { xsb: () => writeText(whole, "; "), sok: () => writeText(whole, ""), slc: () => writeSlc(whole) }[format];
  return [...write()].join("");
}
