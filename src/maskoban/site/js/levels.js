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
  return (line.includes("#") || (line.includes("|") && /[-#@$.*+?_ ]/.test(line))) && ENCODED.test(line);
}

// Whether rows are a board and no text: a player beside a wall, a box or MASK, or a closed frame.
function isDrawn(rows) {
  const text = rows.join("");
  if (text.includes("@") && text.match(/[@+]/g).length === 1) return /[#$?]/.test(text);
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

// The board that lines draw: { line, rows, problem }, or null if they are text after all.
function boardOf(run, first, marked) {
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
function commentFrom(lines, i, kind) {
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
  let run = [], afterBlank = false, board = null, at = i;
  for (; at < lines.length && !isCommentEnd(lines[at]); at++) {
    const line = lines[at];
    if (board === null) {
      if ((run.length || afterBlank) && isRow(line)) {
        run.push(line);
        continue;
      }
      if (isDrawn(run)) board = at - run.length;
      [run, afterBlank] = [[], !line.trim()];
    }
    if (board !== null && isHeading(line, "comment")) break;
  }
  const ended = at < lines.length && isCommentEnd(lines[at]);
  if (!ended && board === null && isDrawn(run)) board = at - run.length;
  if (!ended && board !== null) while (board > i && !lines[board - 1].trim()) board--;
  const end = !ended && board !== null ? board : at;
  for (let k = i; k < end; k++) notes.push(note(k, lines[k]));
  return [notes, ended ? at + 1 : end];
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
    const board = run.length ? boardOf(run, i - run.length + 1, mark.length > 0) : null;
    if (board) yield board;
    else yield* [...mark, ...run.map((line, k) => note(i - run.length + k + 1, line, "plain"))];
    [run, mark] = [[], []];
    return board !== null;
  };
  for (; i < lines.length; i++) {
    const line = lines[i], [text, kind] = withoutSemicolon(line);
    if (kind === "plain" && (isRow(line) || (isFramed(line.trim()) && WRONG.test(line)))) {
      run.push(line);
      continue;
    }
    const belowBoard = yield* finished();
    if (belowBoard) wall = null;
    if (wall !== null) wall = otherWall(line, wall, i + 1, problems);
    if (isHeading(text, "comment")) {
      const [notes, next] = commentFrom(lines, i + 1, kind);
      yield* notes;
      i = next - 1;
    } else if (isHeading(text, "board")) mark = [note(i + 1, text, kind, belowBoard)];
    else if (!line.startsWith("::") && !isCommentEnd(text)) yield note(i + 1, text, kind, belowBoard);
  }
  yield* finished();
}

// --- text files: formats/text.py ---

const KEY = /^(title|author|comment|solution|collection|set|e-?mail)\s*:\s?(.*)$/i;
const HEADING = /^(?:best )?(solution|saved? ?game|snapshot)(?:[ /(].*|:)?$/i;
const MOVES = /^(?:[0-9]*[lurd]\s*)+$/i;
const NUMBER = /^(?:level|no|nr)?[ .#:]{0,3}[0-9]{1,9}\.?$/i;
const LOOK_AHEAD = 100;
const isSpecial = (text) => KEY.test(text.trim()) || HEADING.test(text.trim());
const keyOf = (note) => (note.kind !== "comment" && note.text.trimStart().match(KEY)?.[1].toLowerCase()) || "";
const hasTitle = (notes) => notes.some((note) => keyOf(note) === "title");
const isLine = (block) => block.length === 1 && block[0].kind !== "comment" && !isSpecial(block[0].text);

// The solution or saved game that begins at note i: { kind, lines, end }, or null.
function playAt(notes, i) {
  const text = notes[i].text.trim(), key = text.match(KEY), lines = [];
  if (notes[i].kind === "comment") return null;
  let kind = text.match(HEADING)?.[1].toLowerCase();
  if (key?.[1].toLowerCase() === "solution" && MOVES.test(key[2].trim())) {
    kind = "solution";
    lines.push([key[2], notes[i].line]);
  } else if (!kind) return null;
  let end = i + 1;
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

  add(notes, above) {
    let free = null;
    for (let i = 0; i < notes.length; ) {
      const note = notes[i++], play = playAt(notes, i - 1);
      if (play) {
        i = play.end;
        if (this.plays[play.kind].length === MAX_SOLUTIONS)
          fail(`more than ${MAX_SOLUTIONS} ${play.kind}s of one level`, note.line);
        this.plays[play.kind].push(writtenOut(play));
        continue;
      }
      const key = keyOf(note), value = key ? note.text.slice(note.text.indexOf(":") + 1).replace(/^ /, "") : "";
      if (note.blank) {
        if (this.comment.at(-1)) this.comment.push("");
      } else if (key === "title" && (!this.title || NUMBER.test(this.title))) this.title = value;
      else if (key === "author" && !this.author) this.author = value;
      else if (key === "comment") this.comment.push(value);
      else if (note.belowBoard && note.kind === ";" && !key && !this.title) this.title = note.text;
      else {
        if (note.kind !== "comment" && !key) free = this.comment.length;
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
    else if (keys && (block[i].kind === "comment" || keyOf(block[i]))) end = ++i;
    else i++;
  }
  return end;
}

// The text between two boards: what belongs to the upper board, and what to the lower one.
function split(gap, below) {
  const [start, end] = lastBlock(gap), block = gap.slice(start, end);
  if (!block.length) return [gap, []];
  if (end === gap.length) {
    const cut = start + endOfUpper(block, start === 0 && below && hasTitle(block));
    return [gap.slice(0, cut), gap.slice(cut)];
  }
  const mine = start > 0 && (hasTitle(block) ? !below : isLine(block));
  return mine ? [gap.slice(0, start), block] : [gap, []];
}

// The text above the first board: that of the collection, that of the board, and whether titles stand below boards.
function firstGap(notes, gaps) {
  const [start, end] = lastBlock(notes), block = notes.slice(start, end), touches = block.length > 0 && end === notes.length;
  if (!hasTitle(block)) return touches || isLine(block) ? [notes.slice(0, start), block, true] : [notes, [], true];
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
  const author = header.filter((note) => keyOf(note) === "author").map((note) => note.text.trimStart().match(KEY)[2])[0] ?? "";
  for (const [notes, next] of gaps) {
    const [upper, lower] = next ? split(notes, below) : [notes, []];
    let made = null;
    const problem = problemOf(() => {
      const text = new LevelText();
      text.add(above, true);
      text.add(upper, false);
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
    const rows = isDrawn(each.board.split("\n")) ? each.board : `${behind("Board:")}\n${each.board.replaceAll(" ", "-")}`;
    yield [...(i ? [""] : []), ...above.map(behind), rows, ...(below.length && !prefix ? [""] : []), ...below.map(behind)].join("\n") + "\n";
  }
}

function canStandAbove(title) {
  const special = /^(;|::|<|\ufeff)/.test(title) || isSpecial(title) || isCommentEnd(title);
  const heading = isHeading(title, "comment") || isHeading(title, "board");
  return !special && !heading && !isRow(title) && !isMeantAsRow(title);
}

function* commentLines(comment) {
  if (!comment) return;
  yield "Comment:";
  for (const line of comment.split("\n"))
    if (isCommentEnd(line)) yield* ["Comment-End:", `Comment: ${line}`, "Comment:"];
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
      if (!(name in ENTITIES) || !whole.endsWith(";"))
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

function* readSlc(content, problems) {
  const names = [];
  let text = "", where = [1, 1], open = null, author = "", root = false;
  for (const piece of xmlPieces(content.replace(/^\ufeff/, ""))) {
    if (piece.type === "text") {
      if (!names.length && piece.text.trim()) fail("not well-formed XML: text outside of the root element", ...piece.where);
      if (!text) where = piece.where;
      text += piece.text;
    } else if (piece.type === "start") {
      const { name, attributes } = piece;
      if (!names.length && root) fail("not well-formed XML: junk after document element", ...piece.where);
      if (!names.length && name !== "SokobanLevels") fail(`a file of <${name.slice(0, 40)}>; expected <SokobanLevels>`, ...piece.where);
      root = true;
      if (name === "Level") {
        if (open) fail("a <Level> inside a <Level>; expected </Level>", ...piece.where);
        open = { line: piece.where[0], title: attributes.Id ?? "", author: attributes.Copyright ?? author, rows: [], comment: [], solutions: [] };
      } else if (name === "LevelCollection") author = attributes.Copyright ?? "";
      else if (name === "L" && !open) fail("an <L> outside of a <Level>", ...piece.where);
      names.push(name);
      text = "";
    } else {
      if (names.pop() !== piece.name) fail("not well-formed XML: mismatched tag", ...piece.where);
      if (piece.name === "Level") {
        const { line, title, rows, comment, solutions, author: by } = open;
        const damage = open.problem;
        open = null;
        let made = null;
        const problem = problemOf(() => {
          if (damage) throw damage;
          const clean = (text) => text.replace(new RegExp(CONTROL, "g"), (letter) => (letter === "\n" ? letter : "\ufffd"));
          const texts = [title, by, comment.join("\n")].map(clean);
          made = checked(line, () => level(boardText(rows, line), ...texts, solutions));
        });
        if (problem) problems.push(problem);
        else yield made;
      } else if (!open) {
        // What is known about the collection.
      } else if (piece.name === "L") {
        open.problem ??= problemOf(() => {
          if (open.rows.length === MAX_SIDE) fail(`more than ${MAX_SIDE} rows in a board`, ...piece.where);
          if (text.length > MAX_SIDE) fail(`a row of ${text.length} cells; expected at most ${MAX_SIDE}`, where[0], where[1] + MAX_SIDE);
          const column = text.search(/[^-#@$.*+?_ ]/);
          if (column >= 0) fail(noTile(text[column]), where[0], where[1] + column);
        });
        if (!open.problem) open.rows.push(text);
      } else if (piece.name === "Comment") open.comment.push(text);
      else if (piece.name === "Solution") open.solutions.push(text.replace(/\s+/g, ""));
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
