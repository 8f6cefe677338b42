// The panel's line to Python: questions with a number, answers that come back under it, and plotly.js once a page.

/**
 * @import { AnswerTo, Question, Reply, Request } from "./types/messages"
 * @import { Model, Plotly } from "./types/surroundings"
 * @typedef {{ plotly: Plotly | null, askedAt: number, waiting: ((plotly: Plotly) => void)[] }} Page
 */

/** @type {Record<symbol, Page>} */
const shared = /** @type {typeof globalThis & Record<symbol, Page>} */ (globalThis);
/** What all panels of the page share. */
const KEY = Symbol.for("mtprof_nb page");
shared[KEY] ??= { plotly: null, askedAt: 0, waiting: [] };
const page = shared[KEY];
/** So long an answer is waited for before the page says that none came. */
export const PATIENCE_MS = 2500;
const PLOTLY_PATIENCE_MS = 4000;

/** @param {DataView<ArrayBuffer>} buffer compressed bytes */
function inflated(buffer) {
  return new Response(new Blob([buffer]).stream().pipeThrough(new DecompressionStream("deflate")));
}

/**
 * The plain value in a packed message.
 * @param {DataView<ArrayBuffer>} buffer
 */
export const unpacked = (buffer) => inflated(buffer).json();

export class Wire {
  #model;
  /** @type {Map<string, (buffers: DataView<ArrayBuffer>[]) => void>} */
  #waiting = new Map();
  #number = 0;
  #wantsPlotly = false;
  /** Two views of one panel hear each other's answers. */
  #view = Math.random().toString(36).slice(2);
  /** @type {(() => void)[]} */
  #changed = [];
  /** Whether Python answers: a saved panel without its kernel never hears a word. */
  live = false;
  /** Whether to count on no answer: none came in good time, or nothing can be sent any more. */
  silent = false;
  /** @type {((problem: string) => void) | null} called where Python could not answer; its question stays open. */
  onerror = null;

  /** @param {Model} model */
  constructor(model) {
    this.#model = model;
    model.on("msg:custom", (message, buffers) => this.#receive(message, buffers));
  }

  /**
   * Calls `listener` whenever Python falls silent or is heard again, and when plotly has come.
   * @param {() => void} listener
   */
  onchange(listener) {
    this.#changed.push(listener);
    listener();
  }

  /** Whether charts are plotly's, which zoom and turn by themselves, and not sketches. */
  get hasPlotly() {
    return page.plotly !== null;
  }

  /** Asks whether anybody is there. */
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
   * Sends a question; resolves to the raw buffers of the answer, never where there is no kernel or no answer.
   * @param {Question | Request} question
   * @returns {Promise<DataView<ArrayBuffer>[]>}
   */
  raw(question) {
    const number = `${this.#view}-${++this.#number}`;
    const answer = new Promise((resolve) => this.#waiting.set(number, resolve));
    try {
      this.#model.send({ ...question, number });
    } catch {
      // The kernel was shut down or started anew, and its end of the line is gone.
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

  /**
   * plotly.js, loaded once a page whichever panel asks first.
   * @returns {Promise<Plotly>}
   */
  plotly() {
    if (page.plotly) return Promise.resolve(page.plotly);
    if (!this.#wantsPlotly) {
      this.#wantsPlotly = true;
      // Another panel has asked its kernel; that may be busy, or gone: after a while ours is asked too.
      setTimeout(
        () => page.plotly || this.#askForPlotly(),
        Math.max(page.askedAt + PLOTLY_PATIENCE_MS - Date.now(), 0),
      );
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
  // plotly.js looks for module loaders; hidden from it, they cannot take it for one of their own.
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
