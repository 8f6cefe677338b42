// Messages to Python: numbered questions, and their answers.

/**
 * @import { AnswerTo, LastingQuestion, Question, Reply, Request } from "./types/messages"
 * @import { Model } from "./types/surroundings"
 * @typedef {DataView<ArrayBuffer> | object} Sent an answer: packed by Python, or plain from a page that has no Python
 */

/** How long to wait for an answer before the page shows that the kernel is gone or busy. */
export const PATIENCE_MS = 2500;

/** The plain value in a packed message. @param {DataView<ArrayBuffer>} buffer compressed JSON @returns {Promise<any>} */
export async function unpacked(buffer) {
  const plain = new Blob([buffer]).stream().pipeThrough(new DecompressionStream("deflate"));
  return withoutDeltas(await new Response(plain).json());
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

export class Wire {
  #model;
  /** @type {Map<string, (answer: Sent) => void>} */
  #waiting = new Map();
  /** @type {Map<string, Promise<unknown>>} answers that never change, by their questions */
  #lasting = new Map();
  #number = 0;
  #process;
  /** Distinguishes the views of one panel: each receives the answers to all of them. */
  #view = Math.random().toString(36).slice(2);
  /** @type {(() => void)[]} */
  #changed = [];
  /** Whether Python answers; false for a saved panel without a kernel. */
  live = false;
  /** Whether no answer can be expected: none came in time, or sending failed. */
  silent = false;
  /** @type {((problem: string) => void) | null} called if Python could not answer; the question stays unanswered */
  onerror = null;

  /** @param {Model} model @param {number} process that tabs are asked about, -1 for all */
  constructor(model, process = -1) {
    this.#model = model;
    this.#process = process;
    model.on("msg:custom", (message, buffers) => this.#receive(message, buffers));
  }

  /**
   * Calls `listener` now, and when Python stops or starts answering.
   * @param {() => void} listener
   */
  onchange(listener) {
    this.#changed.push(listener);
    listener();
  }

  /** Asks whether the kernel answers. */
  hello() {
    this.raw({ ask: "hello" });
    setTimeout(() => this.live || this.#turn(false), PATIENCE_MS);
  }

  /** @param {boolean} live */
  #turn(live) {
    if (this.live === live && this.silent === !live) return;
    this.live = live;
    this.silent = !live;
    for (const listener of this.#changed) listener();
  }

  /** @param {Reply} message @param {Sent[]} buffers */
  #receive(message, buffers) {
    this.#turn(true);
    const waiting = this.#waiting.get(message.number);
    this.#waiting.delete(message.number);
    if (message.error) this.onerror?.(message.error);
    else waiting?.(buffers[0]);
  }

  /**
   * Sends a question; resolves to the answer as it was sent, never if there is none.
   * @param {Question | Request} question
   * @returns {Promise<Sent>}
   */
  raw(question) {
    const number = `${this.#view}-${++this.#number}`;
    const answer = new Promise((resolve) => this.#waiting.set(number, resolve));
    try {
      this.#model.send(this.#process < 0 ? { ...question, number } : { ...question, process: this.#process, number });
    } catch {
      // The kernel was shut down or restarted, and its widget is gone.
      this.#turn(false);
    }
    return answer;
  }

  /**
   * Asks a tab's Python side; null where no answer can be expected.
   * @template {Question} Asked
   * @param {Asked} question
   * @returns {Promise<AnswerTo<Asked> | null>}
   */
  async ask(question) {
    if (this.silent) return null;
    const sent = this.raw(question);
    if (this.silent) return null;
    const answer = await sent;
    return answer instanceof DataView ? unpacked(answer) : /** @type {AnswerTo<Asked>} */ (answer);
  }

  /**
   * The answer to a question that is asked once; null where it is not here and cannot be expected.
   * @template {LastingQuestion} Asked
   * @param {Asked} question
   * @returns {Promise<AnswerTo<Asked> | null>}
   */
  once(question) {
    const key = JSON.stringify(question);
    const known = /** @type {Promise<AnswerTo<Asked> | null> | undefined} */ (this.#lasting.get(key));
    const answer = known ?? this.ask(question);
    // A race takes the first that is settled: null, unless the answer came before.
    if (this.silent) return Promise.race([answer, null]);
    this.#lasting.set(key, answer);
    return answer;
  }
}
