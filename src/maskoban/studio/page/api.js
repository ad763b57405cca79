// The server, as functions: every answer or a sentence that says why there is none.

export class Refused extends Error {}

const listeners = new Set();
let online = true;
export const onConnection = (listener) => listeners.add(listener);

function connected(now) {
  if (now === online) return;
  online = now;
  for (const listener of listeners) listener(now);
  if (!now) lookAgain();
}

// The server may have been restarted: look until it is back.
function lookAgain() {
  setTimeout(async () => {
    try {
      connected((await fetch("/api/health")).status < 500); // who refuses is there
    } catch {
      // still away
    }
    if (!online) lookAgain();
  }, 1000);
}

// Floor is sent as dashes: to the server a blank line above or below a board is no row of it.
const dashed = (key, value) => (key === "board" ? value.replaceAll(" ", "-") : value);

async function send(what, given, signal) {
  const body = JSON.stringify(given, dashed);
  const options = { method: "POST", headers: { "Content-Type": "application/json" }, body, signal };
  for (let attempt = 0; ; attempt++) {
    let answer;
    try {
      answer = await fetch(`/api/${what}`, options);
    } catch (error) {
      if (error.name !== "AbortError") connected(false);
      throw error.name === "AbortError" ? error : new Refused("The server does not answer.");
    }
    connected(true);
    if (answer.ok) return answer;
    if (answer.status === 503 && attempt < 3) {
      await new Promise((resolve) => setTimeout(resolve, 1000 * Number(answer.headers.get("Retry-After") ?? 2)));
      continue;
    }
    const refusal = await answer.json().catch(() => ({ message: `the server answered ${answer.status}` }));
    throw new Refused(refusal.message);
  }
}

export const ask = async (what, body, signal) => (await send(what, body, signal)).json();
export const askFile = async (what, body, signal) => (await send(what, body, signal)).blob();

// Server-sent events of a POST; `hear(name, data)` is called for each.
export async function listen(what, body, hear, signal) {
  const answer = await send(`${what}/stream`, body, signal);
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "", ended = false;
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) break;
      text += value;
      for (let cut; (cut = text.indexOf("\n\n")) >= 0; text = text.slice(cut + 2)) {
        const [, name, data] = text.slice(0, cut).match(/^event: (.*)\ndata: (.*)$/s);
        ended ||= name === "end" || name === "error";
        hear(name, JSON.parse(data));
        // A server that stops says so first: look whether it is still there.
        if (name === "error") for (const soon of [500, 3000]) setTimeout(() => health().catch(() => {}), soon);
      }
    }
  } catch (error) {
    if (error.name === "AbortError") throw error;
  }
  if (!ended) {
    connected(false);
    throw new Refused("The connection was lost before the boards were done.");
  }
}

// What is known of the model, once it is loaded.
let facts = null;
export async function model() {
  for (let wait = 100; !facts; wait = Math.min(2 * wait, 2000)) {
    facts = (await health())?.model;
    if (!facts) await new Promise((resolve) => setTimeout(resolve, wait));
  }
  return facts;
}

export async function health() {
  try {
    const answer = await fetch("/api/health");
    if (answer.ok) return await answer.json();
    connected(true);
    throw new Refused((await answer.json()).message);
  } catch (error) {
    if (error instanceof Refused) throw error;
    connected(false);
    return null;
  }
}
