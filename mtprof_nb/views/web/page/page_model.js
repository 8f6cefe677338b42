// The widget's end on a page without Python: it has the state of the panel, and answers questions from what it carries.

import { unpacked } from "../wire.js";
import { PageRows } from "./page_rows.js";

/**
 * @import { AnswerModules, Blocks, CarriedOperators, CarriedRows } from "../types/carried"
 * @import { PanelState, Question, Reply, Request, TabName } from "../types/messages"
 * @import { Model } from "../types/surroundings"
 * @import { Sent } from "../wire.js"
 */

/** @implements {Model} */
export class PageModel {
  #blocks;
  #answers;
  /** @type {((message: Reply, answers: Sent[]) => void) | null} */
  #listener = null;
  /** @type {Map<string, Promise<never>>} parts that were unpacked */
  #unpacked = new Map();
  /** @type {Promise<PageRows> | null} */
  #rows = null;
  #state;

  /** @param {Blocks} blocks @param {AnswerModules} answers @param {Omit<PanelState, "first" | "page">} state */
  constructor(blocks, answers, state) {
    this.#blocks = blocks;
    this.#answers = answers;
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
  async send(question) {
    const { number } = question;
    try {
      this.#listener?.({ number }, ["tab" in question ? await this.#answer(question) : {}]);
    } catch (error) {
      this.#listener?.({ number, error: String(error) }, []);
    }
  }

  /** @param {(Question | Request) & { tab: TabName }} question */
  async #answer(question) {
    const carried = await this.#part(`carried-${question.tab}`);
    const answers = this.#answers[question.tab];
    if (!answers) throw new Error(`this page cannot answer questions of ${question.tab}`);
    this.#rows ??= this.#readRows();
    return answers.answer(/** @type {never} */ (question), carried, await this.#rows);
  }

  async #readRows() {
    /** @type {[CarriedRows, CarriedOperators]} */
    const [rows, { tables }] = await Promise.all([this.#part("rows"), this.#part("carried-operators")]);
    return new PageRows(rows, tables ?? {});
  }

  /** @param {string} name @returns {Promise<never>} */
  #part(name) {
    // A comparison has no operators.
    const block = this.#blocks[name];
    const known = this.#unpacked.get(name) ?? Promise.resolve(block ? unpacked(bytes(block)) : {}).then(withoutDeltas);
    this.#unpacked.set(name, known);
    return known;
  }
}

/** @param {string} base64 */
export function bytes(base64) {
  const text = atob(base64);
  const found = new Uint8Array(text.length);
  for (let at = 0; at < text.length; at++) found[at] = text.charCodeAt(at);
  return new DataView(found.buffer);
}

/**
 * A value in which every `{ deltas: [...] }` is the column that begins at 0 and grows by them.
 * @param {unknown} value
 * @returns {never}
 */
export function withoutDeltas(value) {
  if (value === null || typeof value !== "object" || Array.isArray(value)) return /** @type {never} */ (value);
  if ("deltas" in value) {
    let at = 0;
    return /** @type {never} */ (/** @type {number[]} */ (value.deltas).map((by) => (at += by)));
  }
  const entries = Object.entries(value).map(([key, part]) => [key, withoutDeltas(part)]);
  return /** @type {never} */ (Object.fromEntries(entries));
}
