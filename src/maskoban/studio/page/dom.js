// Small things every part of the page needs.

export const $ = (id) => document.getElementById(id);

export function el(tag, properties = {}, ...children) {
  const node = Object.assign(document.createElement(tag), properties);
  node.append(...children);
  return node;
}

export const button = (text, act, title = "") => el("button", { type: "button", textContent: text, onclick: act, title });

// A disabled button would lose the focus to nowhere; one that only says so keeps it. Clicks on it end here.
export const enable = (node, able) => node.setAttribute("aria-disabled", String(!able));
addEventListener("click", (event) => {
  if (!event.target.closest?.("[aria-disabled=true]")) return;
  event.preventDefault();
  event.stopImmediatePropagation();
}, true);

// Ctrl+Z in a part of the page, where nothing is being typed; Ctrl+Y and Ctrl+Shift+Z, where there is a redo.
export const onUndoKey = (part, undo, redo = () => {}) => addEventListener("keydown", (event) => {
  const key = event.key.toLowerCase();
  if ($(part).hidden || event.target.closest?.("input, textarea, select, dialog")) return;
  if (!(event.ctrlKey || event.metaKey) || (key !== "z" && key !== "y")) return;
  event.preventDefault();
  key === "y" || event.shiftKey ? redo() : undo();
});

let fading;
// A passing word; with something to do about it, it stays a while longer.
export function toast(sentence, label = "", act = null) {
  const way = button(label, () => (fade(), act()));
  const fade = () => ($("toast").classList.remove("shown"), way.remove());
  $("toast").replaceChildren(sentence, ...(act ? [way] : []));
  $("toast").classList.add("shown");
  clearTimeout(fading);
  fading = setTimeout(fade, act ? 10_000 : 3500);
}

export function download(content, name) {
  const url = URL.createObjectURL(content instanceof Blob ? content : new Blob([content], { type: "text/plain" }));
  el("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

export async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // Not allowed, or not a secure page: the old way.
    const area = el("textarea", { value: text });
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
}

// To other people: by the system's own dialog on phones, else by the clipboard.
export async function shareOut(text) {
  if (navigator.share && matchMedia("(pointer: coarse)").matches) {
    try {
      return await navigator.share({ text });
    } catch (error) {
      if (error.name === "AbortError") return;
    }
  }
  await copyText(text);
  toast("Copied. Paste it where you like.");
}

// Only the newest of several questions matters: asking again takes back the one before.
export class Newest {
  #controller = null;
  async run(work) {
    this.cancel();
    const controller = (this.#controller = new AbortController());
    try {
      return await work(controller.signal);
    } catch (error) {
      if (error.name === "AbortError") return null;
      throw error;
    } finally {
      if (this.#controller === controller) this.#controller = null;
    }
  }
  cancel() {
    this.#controller?.abort();
    this.#controller = null;
  }
  get running() {
    return this.#controller !== null;
  }
}

export const plural = (count, word, many = `${word}s`) => `${count.toLocaleString("en")} ${count === 1 ? word : many}`;

// The solver's judgement in two lines: what it says, and why.
export function judgementLines({ verdict, reason, word, pushes, effort }) {
  const head = [verdict, word].filter(Boolean).join(", ");
  if (verdict !== "solved") return [head, reason || "every push was tried"];
  const measures = [plural(pushes, "push", "pushes"), effort == null ? "" : `effort ${effort.toLocaleString("en")}`];
  return [head, measures.filter(Boolean).join(", ")];
}

export function judgementNode(judgement) {
  const [head, why] = judgementLines(judgement);
  return el("span", {}, el("b", { textContent: head, className: judgement.verdict }), " ", el("span", { textContent: why, className: "soft" }));
}
