// The backend. This file is the only seam between the page and what samples and solves: here the server of
// `maskoban studio`; the static site puts another file with the same exports in its place. No other file of the page
// uses the network.
//
// A board is a text: rows of # @ $ . * + ? and floor, all of one length, floor as spaces, rows ended by "\n" but the last.
// Every function returns a promise. It throws `Refused` with one sentence for the reader, or an error named
// "AbortError" when its `signal` (an AbortSignal, always optional) is aborted; the work ends then.
//
//   model(signal?)                        once it is loaded:
//     -> { name, height, width, samplers: [{ name, config, solvable, attempts, evaluations }], sizes }
//        height, width: of every board it samples. sizes: { least, most, boxes }, the sides and the most boxes of what
//        another model samples, or null without such a model. solvable: share of boards; attempts, evaluations: a board, on
//        average. All three are null where nobody measured them. config: the fields of SamplerConfig; config.critic.
//
//   firstBoards()                         -> [{ board, title, word, pushes }]: proved boards that were drawn before
//
//   generate(request, signal?)            async iterator of events
//     request: { count, seed?, sampler?, temperature?, sweeps?, only_solvable?, difficulty?, size?, boxes? }
//              size: such as "8x12"; size and boxes only where model() has sizes.
//              sampler: "best" (default), "plain", "fast"; difficulty: "easy", "medium", "hard", "expert".
//              The same seed gives the same boards. Without a seed a random one below 1,000,000 is used.
//   complete(request, signal?)            async iterator of events
//     request: { board, count, seed? }    fills the ? cells of a board of the model's size, or one within sizes
//   Events, in this order (docs/studio.md has the same table):
//     { type: "start", seed, count, model, board, evaluations, sampler }    board: before the first commit
//     { type: "boards", numbers }                                           boards that begin now; several rounds with a filter
//     { type: "commit", numbers, cells, tiles, probabilities }              one network evaluation; a cell each entry
//     { type: "attempt", numbers, accepted }                                by the critic; what is rejected starts again
//     { type: "judged", number, title, board, attempts, judgement, kept }   a finished board; kept: it matches the filter
//     { type: "end", kept, sampled }                                        the last one
//     The iterator throws where something goes wrong on the way.
//
//   rate({ board }, signal?)     -> judgement: { verdict, reason, word, pushes, moves, effort, ... }
//        verdict: "solved", "unsolvable", "unknown", "malformed"; word: the difficulty; null where unknown
//   solve({ board, mode?, seconds? }, signal?)   mode: "any" (default), "pushes" (fewest pushes)
//     -> { verdict, reason, solution, pushes, moves }      solution: LURD, or null
//   repair({ board }, signal?)   -> { verdict, reason, walls }     one or two walls to remove: walls[0] = [[row, column], ...]
//        verdict: "solvable", "repaired", "unrepaired", "unknown", "malformed"
//   deadCells({ board }, signal?) -> [[row, column], ...]  cells from which no box reaches a goal; no walls
//
//   readLevels(content)          -> [{ board, title, author, comment, solutions }]   content: a string or a Uint8Array
//   writeLevels(levels, format)  -> a string              format: "xsb", "sok"; levels as above, only `board` is required
//   picture({ board, format, solution? }) -> a Blob       format: "png", "gif" (of the solution; none given: it is found)
//   FORMATS: what readLevels reads, in the words of the page
//   MAX_BYTES: of one call of readLevels or writeLevels. The page sends more in several calls.
//
//   connect()                    starts the backend; throws Refused if it refuses this page. Resolves before the model is loaded.
//   onConnection(listener)       listener(there): called when the backend is lost or is back. Never called if it cannot be lost.
//   onLoading(listener)          listener({ loaded, total }) in bytes while the model is fetched; listener(null) once it is there.
//                                Never called if the model need not be fetched.

export class Refused extends Error {}

export const FORMATS = "XSB, .sok, .slc, Boxoban, .npz, .npy";
export const MAX_BYTES = 600_000; // a request may have 1,000,000, and base64 is a third longer

const listeners = new Set();
let online = true;
export const onConnection = (listener) => listeners.add(listener);
export const onLoading = () => {}; // the server has the model

export async function connect() {
  await health();
}

// All addresses are relative, so that the page works under any path.
const request = (what, options) => fetch(`api/${what}`, options);
const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

function connected(now) {
  if (now === online) return;
  online = now;
  for (const listener of listeners) listener(now);
  if (!now) lookAgain();
}

// The server may have been restarted: look until it is back.
async function lookAgain() {
  while (!online) {
    await pause(1000);
    try {
      connected((await request("health")).status < 500); // a server that refuses is there
    } catch {
      // still away
    }
  }
}

async function health() {
  let answer;
  try {
    answer = await request("health");
  } catch {
    connected(false);
    return null;
  }
  connected(true);
  if (!answer.ok) throw new Refused((await answer.json()).message);
  return answer.json();
}

let facts = null;
export async function model(signal) {
  for (let wait = 100; !facts; wait = Math.min(2 * wait, 2000)) {
    facts = (await health())?.model;
    if (!facts) await pause(wait);
    signal?.throwIfAborted();
  }
  return facts;
}

export const firstBoards = async () => []; // the server draws at once

// Floor is sent as dashes: to the server a blank line above or below a board is no row of it.
const dashed = (key, value) => (key === "board" ? value.replaceAll(" ", "-") : value);

async function send(what, given, signal) {
  const body = JSON.stringify(given, dashed);
  const options = { method: "POST", headers: { "Content-Type": "application/json" }, body, signal };
  for (let attempt = 0; ; attempt++) {
    let answer;
    try {
      answer = await request(what, options);
    } catch (error) {
      if (error.name === "AbortError") throw error;
      connected(false);
      throw new Refused("The server does not answer.");
    }
    connected(true);
    if (answer.ok) return answer;
    if (answer.status === 503 && attempt < 3) {
      await pause(1000 * Number(answer.headers.get("Retry-After") ?? 2));
      signal?.throwIfAborted();
      continue;
    }
    const refusal = await answer.json().catch(() => ({ message: `the server answered ${answer.status}` }));
    throw new Refused(refusal.message);
  }
}

const ask = async (what, given, signal) => (await send(what, given, signal)).json();

export const solve = ({ board, mode = "any", seconds = 5 }, signal) => ask("solve", { board, mode, seconds }, signal);
export const rate = ({ board }, signal) => ask("rate", { board }, signal);
export const repair = ({ board }, signal) => ask("repair", { board, walls: 2 }, signal);
export const deadCells = async ({ board }, signal) => (await ask("dead-cells", { board }, signal)).dead;
export const picture = async (given, signal) => (await send("picture", given, signal)).blob();
export const generate = (given, signal) => events("generate/stream", given, signal);
export const complete = (given, signal) => events("complete/stream", given, signal);
export const writeLevels = async (levels, format) => (await ask("convert", { levels, to: format })).content;

export async function readLevels(content) {
  const given = typeof content === "string" ? { content } : { content: base64(content), encoding: "base64" };
  try {
    return (await ask("convert", given)).levels;
  } catch (error) {
    // The API calls it "content"; the reader sees no such thing.
    const sentence = error.message.replace(/^content(, |: )/, "");
    throw error instanceof Refused ? new Refused(sentence) : error;
  }
}

function base64(bytes) {
  let letters = "";
  for (let i = 0; i < bytes.length; i += 8192) letters += String.fromCharCode(...bytes.subarray(i, i + 8192));
  return btoa(letters);
}

// Server-sent events of a POST.
async function* events(what, given, signal) {
  const answer = await send(what, given, signal);
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) break;
      text += value;
      for (let cut; (cut = text.indexOf("\n\n")) >= 0; text = text.slice(cut + 2)) {
        const [, type, data] = text.slice(0, cut).match(/^event: (.*)\ndata: (.*)$/s);
        const event = { type, ...JSON.parse(data) };
        if (type === "error") {
          // A server that stops says so first: look whether it is still there.
          for (const soon of [500, 3000]) setTimeout(() => health().catch(() => {}), soon);
          throw new Refused(event.message);
        }
        yield event;
        if (type === "end") return;
      }
    }
  } catch (error) {
    if (error instanceof Refused || error.name === "AbortError") throw error;
  } finally {
    reader.cancel().catch(() => {}); // whoever stops listening ends the sampling
  }
  connected(false);
  throw new Refused("The connection was lost before the boards were done.");
}
