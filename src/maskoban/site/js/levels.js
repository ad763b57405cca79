// Level files: XSB, .sok and .slc are read and written as boards/formats does it, which explains the rules.
// A level is { board, title, author, comment, solutions }.

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

const ENCODED = /^(?:[0-9]*[-#@$.*+?_ ]|\|)+$/;
const WRONG = /[^-#@$.*+?_ |0-9]|[0-9](?=\||$)/;

function isRow(line) {
  if (ROW.test(line)) return line.trim() !== "";
  return (line.includes("#") || (line.includes("|") && /[-#@$.*+?_ ]/.test(line))) && ENCODED.test(line);
}

function isMeantAsRow(line, belowRow) {
  const text = line.trim();
  if (belowRow) return text.startsWith("#") || text.endsWith("#");
  return text.startsWith("##") || (text.length > 1 && text.startsWith("#") && text.endsWith("#"));
}

const withoutColon = (line) => line.trim().replace(/:$/, "").trimEnd().toLowerCase();
const isCommentEnd = (line) => withoutColon(line) === "comment-end";

function withoutSemicolon(line) {
  const bare = line.trimStart();
  return bare.startsWith(";") ? [bare.slice(1).replace(/^ /, ""), ";"] : [line, "plain"];
}

// `text` without run lengths: 3#2-$ is ###--$.
function expand(text, limit, what, line, column = 1) {
  if (text.length <= limit && !/[0-9]/.test(text)) return text;
  let out = "", total = 0;
  for (const run of text.matchAll(/([0-9]*)([^0-9])/g)) {
    const count = run[1].length > 9 ? limit + 1 : Number(run[1] || 1);
    total += count;
    if (count > MAX_SIDE && MAX_SIDE < limit) fail(`a run of more than ${MAX_SIDE} ${what}`, line, column + run.index);
    if (total > limit) fail(`more than ${limit} ${what}`, line, column + run.index);
    out += run[2].repeat(count);
  }
  return out;
}

function rowsOf(line, above, number) {
  const rows = [];
  let column = 1;
  for (const row of line.replace(/\|$/, "").split("|")) {
    if (above + rows.length === MAX_SIDE) fail(`more than ${MAX_SIDE} rows in a board`, number, column);
    rows.push(expand(row, MAX_SIDE, "cells in a row", number, column));
    column += row.length + 1;
  }
  return rows;
}

const isBoard = (run) => run.some(([, line]) => /[#?@|]/.test(line));

// Boards { line, rows } and notes { line, text, kind, belowBoard, blank } in order.
function* boardsAndNotes(lines) {
  let run = [], rows = [], section = null;
  const note = (line, text, kind, belowBoard = false) => ({ line, text, kind, belowBoard, blank: !text.trim() && kind !== "comment" });
  function* finished() {
    if (run.length && isBoard(run)) yield { line: run[0][0], rows };
    else yield* run.map(([number, line]) => note(number, line, "plain"));
    [run, rows] = [[], []];
  }
  for (const [i, line] of lines.entries()) {
    const number = i + 1;
    if (line.length > MAX_LINE) fail(`a line of more than ${MAX_LINE} characters`, number, MAX_LINE + 1);
    const control = line.search(/[\u0000-\u0008\u000a-\u001f]/);
    if (control >= 0) {
      const code = line.charCodeAt(control).toString(16).toUpperCase().padStart(4, "0");
      fail(`the control character U+${code}; expected text, XML or .npz`, number, control + 1);
    }
    const [text, kind] = withoutSemicolon(line);
    if (section && section[1] === ";" && kind === "plain") section = null;
    if (section) {
      const inside = section[1] === ";" ? text : line;
      if (isCommentEnd(inside)) section = null;
      else yield note(number, inside, "comment");
      continue;
    }
    if (kind === "plain" && isRow(line)) {
      run.push([number, line]);
      rows.push(...rowsOf(line, rows.length, number));
      continue;
    }
    if (kind === "plain" && isMeantAsRow(line, run.length > 0)) {
      const column = Math.max(line.search(WRONG), 0);
      fail(noTile(line[column]), number, column + 1);
    }
    const belowBoard = run.length > 0 && isBoard(run);
    yield* finished();
    if (text.trim().endsWith(":") && withoutColon(text) === "comment") section = [number, kind];
    else if (!line.startsWith("::") && !isCommentEnd(text)) yield note(number, text, kind, belowBoard);
  }
  if (section && section[1] === "plain") fail("a comment without an end; expected a line Comment-End:", section[0]);
  yield* finished();
}

// --- text files: formats/text.py ---

const KEY = /^(title|author|comment|solution)\s*:\s?(.*)$/i;
const SOLUTION = /^solution(?:[ /][^:]*)?:?$/i;
const MOVES = /^(?:[0-9]*[lurd]\s*)+$/i;
const isKey = (text) => KEY.test(text.trim()) || SOLUTION.test(text.trim());
const isMoves = (notes, i) => i < notes.length && notes[i].kind !== "comment" && MOVES.test(notes[i].text.trim());

class LevelText {
  title = "";
  author = "";
  comment = [];
  solutions = [];

  level(board, defaultAuthor) {
    return checked(board.line, () =>
      level(boardText(board.rows, board.line), this.title, this.author || defaultAuthor, this.comment.join("\n"), this.solutions));
  }

  add(notes, hasTitle) {
    for (let i = 0; i < notes.length; ) {
      const note = notes[i++];
      const key = note.kind !== "comment" ? note.text.trimStart().match(KEY) : null;
      const name = key ? key[1].toLowerCase() : "", value = key ? key[2] : "";
      if (note.blank) {
        if (this.comment.at(-1)) this.comment.push("");
      } else if (note.kind === "comment") this.comment.push(note.text);
      else if (name === "title" && !this.title) this.title = value;
      else if (name === "author" && !this.author) this.author = value;
      else if (name === "comment") this.comment.push(value);
      else if (name === "solution" && MOVES.test(value.trim())) i = this.#addMoves(notes, i, value);
      else if (SOLUTION.test(note.text.trim()) && isMoves(notes, i)) i = this.#addMoves(notes, i, "");
      else if (!name && !this.title && (hasTitle || (note.belowBoard && note.kind === ";"))) this.title = note.text;
      else this.comment.push(note.text);
    }
  }

  #addMoves(notes, i, begun) {
    if (this.solutions.length === MAX_SOLUTIONS) fail(`more than ${MAX_SOLUTIONS} solutions of one level`, notes[i - 1].line);
    const lines = [[begun, notes[i - 1].line]];
    for (; isMoves(notes, i); i++) lines.push([notes[i].text, notes[i].line]);
    let moves = "";
    for (const [text, line] of lines) {
      moves += expand(text.replace(/\s+/g, ""), MAX_MOVES, "moves in a solution", line);
      if (moves.length > MAX_MOVES) fail(`more than ${MAX_MOVES} moves in a solution`, line);
    }
    this.solutions.push(moves);
    return i;
  }
}

// The text between two boards: what belongs to the upper board, and what to the lower one.
function split(gap) {
  let end = gap.length;
  while (end && gap[end - 1].blank) end--;
  let start = end;
  while (start && !gap[start - 1].blank) start--;
  const block = gap.slice(start, end), directlyAbove = end === gap.length;
  const single = block.length === 1 && !block[0].belowBoard && block[0].kind !== "comment";
  if (block.length && (directlyAbove || (single && !isKey(block[0].text)))) return [gap.slice(0, start), block];
  return [gap, []];
}

function* readText(content) {
  const lines = content.replace(/^\ufeff/, "").split(/\r\n|\r|\n/).map((line) => line.replace(/[\x1a\f]+$/, ""));
  if (lines.at(-1) === "") lines.pop();
  let board = null, text = new LevelText(), defaultAuthor = "", gap = [], letters = 0;
  for (const piece of boardsAndNotes(lines)) {
    if (!piece.rows) {
      if (piece.blank && gap.at(-1)?.blank) continue;
      gap.push(piece);
      letters += piece.text.length;
      if (letters > MAX_NOTES) fail("too much text between two boards", piece.line);
      continue;
    }
    const [below, above] = split(gap);
    text.add(below, false);
    if (board) {
      yield text.level(board, defaultAuthor);
      text = new LevelText();
    } else [defaultAuthor, text.author] = [text.author, ""]; // above the first board, the author is the collection's
    text.add(above, true);
    [board, gap, letters] = [piece, [], 0];
  }
  if (board) {
    text.add(gap, false);
    yield text.level(board, defaultAuthor);
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
    const rows = /[#?@|]/.test(each.board) ? each.board : each.board.replaceAll(" ", "-").replaceAll("\n", "|") + "|";
    yield [...(i ? [""] : []), ...above.map(behind), rows, ...(below.length && !prefix ? [""] : []), ...below.map(behind)].join("\n") + "\n";
  }
}

function canStandAbove(title) {
  const special = /^(;|::|<|\ufeff)/.test(title) || isKey(title) || isCommentEnd(title);
  return !special && !isRow(title) && !isMeantAsRow(title, false);
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

function* readSlc(content) {
  const names = [], header = [];
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
        open = null;
        yield checked(line, () => level(boardText(rows, line), title, by, [...header.splice(0), ...comment].join("\n"), solutions));
      } else if (!open) {
        if (["Title", "Description", "Email", "Url"].includes(piece.name) && text.trim())
          header.push(piece.name === "Description" ? text.trim() : `${piece.name}: ${text.trim()}`);
      } else if (piece.name === "L") {
        if (open.rows.length === MAX_SIDE) fail(`more than ${MAX_SIDE} rows in a board`, ...piece.where);
        const column = text.search(/[^-#@$.*+?_ ]/);
        if (column >= 0) fail(noTile(text[column]), where[0], where[1] + column);
        if (text.length > MAX_SIDE) fail(`a row of ${text.length} cells; expected at most ${MAX_SIDE}`, where[0], where[1] + MAX_SIDE);
        open.rows.push(text);
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
  const levels = [];
  let letters = 0;
  for (const each of (/^\ufeff?\s*</.test(content) ? readSlc : readText)(content)) {
    if (levels.length === MAX_LEVELS) throw new LevelError("more than 10,000 levels; send fewer at a time");
    letters += each.board.length + each.comment.length + each.solutions.join("").length;
    if (letters > MAX_LETTERS) throw new LevelError("more than 4,000,000 letters once unpacked; send less at a time");
    levels.push(each);
  }
  if (!levels.length) throw new LevelError("no level in it; expected at least one board");
  return levels;
}

export function writeLevels(levels, format) {
  const whole = levels.map(({ board, title, author, comment, solutions }) =>
    level(boardText(board.split("\n")), title, author, comment, solutions));
  const write = { xsb: () => writeText(whole, "; "), sok: () => writeText(whole, ""), slc: () => writeSlc(whole) }[format];
  return [...write()].join("");
}
