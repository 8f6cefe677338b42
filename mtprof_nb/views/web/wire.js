// Messages to Python: numbered questions, their answers, and plotly.js once for each page.

/**
 * @import { AnswerTo, Question, Reply, Request } from "./types/messages"
 * @import { Model, Plotly } from "./types/surroundings"
 * @typedef {{ plotly: Plotly | null, askedAt: number, waiting: ((plotly: Plotly) => void)[] }} Page
 */

const shared = /** @type {typeof globalThis & Record<symbol, Page>} */ (globalThis);
/** The key of the state that all panels of a page share. */
const KEY = Symbol.for("mtprof_nb page");
shared[KEY] ??= { plotly: null, askedAt: 0, waiting: [] };
const page = shared[KEY];
/** How long to wait for an answer before the page says that the kernel is gone or busy. */
export const PATIENCE_MS = 2500;
const PLOTLY_PATIENCE_MS = 4000;

/** @param {DataView<ArrayBuffer>} buffer compressed bytes */
function inflated(buffer) {
  return new Response(new Blob([buffer]).stream().pipeThrough(new DecompressionStream("deflate")));
}

/** The plain value in a packed message. @param {DataView<ArrayBuffer>} buffer */
export const unpacked = (buffer) => inflated(buffer).json();

export class Wire {
  #model;
  /** @type {Map<string, (buffers: DataView<ArrayBuffer>[]) => void>} */
  #waiting = new Map();
  #number = 0;
  #wantsPlotly = false;
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

  /** @param {Model} model */
  constructor(model) {
    this.#model = model;
    model.on("msg:custom", (message, buffers) => this.#receive(message, buffers));
  }

  /**
   * Calls `listener` now, when Python stops or starts answering, and when plotly was loaded.
   * @param {() => void} listener
   */
  onchange(listener) {
    this.#changed.push(listener);
    listener();
  }

  /** Whether charts stay sketches, which cannot zoom: plotly was not loaded, and Python does not send it. */
  get isSketched() {
    return this.silent && page.plotly === null;
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

  /** @param {Reply} message @param {DataView<ArrayBuffer>[]} buffers */
  #receive(message, buffers) {
    this.#turn(true);
    const waiting = this.#waiting.get(message.number);
    this.#waiting.delete(message.number);
    if (message.error) this.onerror?.(message.error);
    else waiting?.(buffers);
  }

  /**
   * Sends a question; resolves to the raw buffers of the answer, never if there is none.
   * @param {Question | Request} question
   * @returns {Promise<DataView<ArrayBuffer>[]>}
   */
  raw(question) {
    const number = `${this.#view}-${++this.#number}`;
    const answer = new Promise((resolve) => this.#waiting.set(number, resolve));
    try {
      this.#model.send({ ...question, number });
    } catch {
      // The kernel was shut down or restarted, and its widget is gone.
      this.#turn(false);
    }
    return answer;
  }

  /**
   * Asks a tab's Python side.
   * @template {Question} Asked
   * @param {Asked} question
   * @returns {Promise<AnswerTo<Asked>>}
   */
  async ask(question) {
    const [buffer] = await this.raw(question);
    return unpacked(buffer);
  }

  /** plotly.js, loaded once for each page. @returns {Promise<Plotly>} */
  plotly() {
    if (page.plotly) return Promise.resolve(page.plotly);
    if (!this.#wantsPlotly) {
      this.#wantsPlotly = true;
      // If another panel asked its kernel and that is busy or gone, ours is asked after a while.
      const wait = Math.max(page.askedAt + PLOTLY_PATIENCE_MS - Date.now(), 0);
      setTimeout(() => page.plotly || this.#askForPlotly(), wait);
    }
    /** @type {Promise<Plotly>} */
    const loaded = new Promise((resolve) => page.waiting.push(resolve));
    return loaded.then((plotly) => {
      for (const listener of this.#changed) listener();
      return plotly;
    });
  }

  async #askForPlotly() {
    page.askedAt = Date.now();
    const [buffer] = await this.raw({ ask: "plotly" });
    await load(buffer);
  }
}

/** @param {DataView<ArrayBuffer>} buffer */
async function load(buffer) {
  if (page.plotly) return;
  const source = await inflated(buffer).text();
  const before = globalThis.Plotly;
  // Hides module loaders from plotly.js, which would register itself with them.
  const blob = new Blob(["const define = undefined, module = undefined, exports = undefined;\n", source], {
    type: "text/javascript",
  });
  const url = URL.createObjectURL(blob);
  await import(url);
  URL.revokeObjectURL(url);
  page.plotly ??= globalThis.Plotly ?? null;
  const { plotly } = page;
  globalThis.Plotly = before;
  if (before === undefined) delete globalThis.Plotly;
  if (plotly) for (const resolve of page.waiting.splice(0)) resolve(plotly);
}
