// The widget's end on a page without Python: it has the state of the panel, and the answers that the page carries.

import { unpacked } from "../wire.js";

/**
 * @import { PanelState, Question, Reply, Request } from "../types/messages"
 * @import { Model } from "../types/surroundings"
 * @import { Sent } from "../wire.js"
 * @typedef {Record<string, string>} Blocks texts of the packed parts of a page, by their names
 */

/** @implements {Model} */
export class PageModel {
  #blocks;
  /** @type {((message: Reply, answers: Sent[]) => void) | null} */
  #listener = null;
  /** @type {Map<string, Promise<Record<string, object>>>} answers of the tabs, by their questions */
  #carried = new Map();
  #state;

  /** @param {Blocks} blocks @param {Omit<PanelState, "first" | "page">} state */
  constructor(blocks, state) {
    this.#blocks = blocks;
    const first = Object.fromEntries(state.tabs.map(({ name }) => [name, bytes(blocks[`first-${name}`])]));
    /** @type {PanelState} */
    this.#state = { ...state, first, page: "" };
  }

  /**
   * @template {keyof PanelState} Key
   * @param {Key} key
   * @returns {PanelState[Key]}
   */
  get(key) {
    return this.#state[key];
  }

  /** @param {string} event @param {(message: Reply, answers: Sent[]) => void} listener */
  on(event, listener) {
    if (event === "msg:custom") this.#listener = listener;
  }

  /** @param {(Question | Request) & { number: string }} question */
  async send({ number, ...question }) {
    try {
      this.#listener?.({ number }, ["tab" in question ? await this.#answer(question) : {}]);
    } catch (error) {
      this.#listener?.({ number, error: String(error) }, []);
    }
  }

  /** @param {{ tab: string }} question */
  async #answer({ tab, ...asked }) {
    const carried = this.#carried.get(tab) ?? unpacked(bytes(this.#blocks[`carried-${tab}`]));
    this.#carried.set(tab, carried);
    const answer = (await carried)[Object.values(asked).join("-")];
    if (!answer) throw new Error(`this page has no answer to ${JSON.stringify({ tab, ...asked })}`);
    return answer;
  }
}

/** @param {string} base64 */
export function bytes(base64) {
  const text = atob(base64);
  const decoded = new Uint8Array(text.length);
  for (let at = 0; at < text.length; at++) decoded[at] = text.charCodeAt(at);
  return new DataView(decoded.buffer);
}
