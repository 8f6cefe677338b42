// The search field of a panel, which all its tabs follow.

import { button, h, settled } from "./dom.js";

/**
 * @import { Store } from "./store.js"
 * @typedef {{ text: string, regex: boolean }} Search
 */

/** How long the tabs wait for the next letter. */
const WAIT_MS = 80;

/**
 * A test of a text, and what is wrong with an expression that does not compile, which every text passes.
 * @param {Search} search
 * @returns {{ holds: (text: string) => boolean, problem: string }}
 */
export function searched({ text, regex }) {
  if (!regex) {
    const part = text.toLowerCase();
    return { holds: (name) => name.toLowerCase().includes(part), problem: "" };
  }
  try {
    const pattern = new RegExp(text, "i");
    return { holds: (name) => pattern.test(name), problem: "" };
  } catch (error) {
    return { holds: () => true, problem: /** @type {SyntaxError} */ (error).message.split(": ").pop() ?? "" };
  }
}

/** The field, and the button that makes a regular expression of its text. @param {Store} store */
export function searchField(store) {
  const seek = () => {
    store.seek({ text: input.value, regex: regex.getAttribute("aria-pressed") === "true" });
    input.setAttribute("aria-invalid", String(searched(store.search).problem !== ""));
  };
  const input = h("input", {
    type: "search",
    class: "mtprof-input mtprof-filter",
    placeholder: "Search",
    title: "Names of ops in all tabs, and the source",
    "aria-label": "Search in all tabs",
    spellcheck: "false",
    oninput: settled(seek, WAIT_MS),
  });
  const meaning = "The search is a regular expression";
  const regex = button({
    class: "mtprof-button mtprof-regex",
    "aria-pressed": "false",
    "aria-label": meaning,
    title: meaning,
    text: ".*",
    onclick: () => {
      regex.setAttribute("aria-pressed", String(regex.getAttribute("aria-pressed") !== "true"));
      seek();
    },
  });
  return h("div", { class: "mtprof-search", role: "search" }, input, regex);
}
