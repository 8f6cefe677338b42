// A plotly chart that follows theme and size of its element, and shows a sketch until plotly is loaded.

import { timeTicks } from "../format.js";
import { colours } from "../theme.js";
import { sketch } from "./sketch.js";

/**
 * @import { Axis, Picture } from "../types/pictures"
 * @import { Plotly, PlotlyEvents, PlotlyListeners, Plotted } from "../types/surroundings"
 * @import { Colours } from "../theme.js"
 * @import { Wire } from "../wire.js"
 * @typedef {[begin: number, end: number]} Window in seconds since the recording began
 */

const CONFIG = { displayModeBar: false, displaylogo: false, doubleClick: false, scrollZoom: false, showTips: false };

export class Chart {
  #host;
  #wire;
  /** @type {Plotly | null} */
  #plotly = null;
  /** @type {PlotlyListeners} */
  #listeners = {};
  #picture;
  #drawing = Promise.resolve();
  #observer = new ResizeObserver(() => this.#size === this.#drawnSize || this.draw());
  /** The size of the host when it was last drawn, or could not be drawn because it was hidden. */
  #drawnSize = "";
  #isGone = false;

  /** @param {HTMLElement} host @param {Wire} wire @param {() => Picture} picture what to draw at present */
  constructor(host, wire, picture) {
    this.#host = /** @type {Plotted} */ (host);
    this.#wire = wire;
    this.#picture = picture;
    this.#observer.observe(host);
  }

  /**
   * Listens to an event of plotly's.
   * @template {keyof PlotlyEvents} Name
   * @param {Name} event
   * @param {PlotlyListeners[Name]} listener
   */
  on(event, listener) {
    this.#listeners[event] = listener;
  }

  /**
   * Listens to a zoom by drag, with its window in the axis' unit, and to a double click, with null.
   * @param {(window: Window | null) => void} listener
   */
  onzoom(listener) {
    this.on("plotly_relayout", (change) => {
      const [begin, end] = change["xaxis.range"] ?? [change["xaxis.range[0]"], change["xaxis.range[1]"]];
      if (begin !== undefined && end !== undefined) listener([begin, end]);
    });
    this.on("plotly_doubleclick", () => listener(null));
  }

  get #size() {
    return `${this.#host.clientWidth} ${this.#host.clientHeight}`;
  }

  /** Draws the present picture in the present size and colours: a hidden chart once it is shown, unless it is gone. */
  draw() {
    this.#drawnSize = this.#size;
    if (this.#isGone || !this.#host.clientWidth) return;
    if (this.#plotly) {
      // One after the other: plotly must not be asked to draw while it draws. A drawing that fails does not end the next.
      const react = () => this.#react();
      this.#drawing = this.#drawing.then(react, react);
      return;
    }
    this.#host.replaceChildren(sketch(this.#picture(), this.#host.clientWidth, this.#host.clientHeight));
    this.#wire.plotly().then((plotly) => {
      if (this.#plotly || this.#isGone) return;
      this.#plotly = plotly;
      this.#host.replaceChildren();
      this.draw();
    });
  }

  destroy() {
    this.#isGone = true;
    this.#observer.disconnect();
    this.#plotly?.purge(this.#host);
  }

  async #react() {
    // A picture that arrives while the user draws a zoom box would take the box away.
    while (this.#host._dragging) await new Promise((resolve) => setTimeout(resolve, 40));
    if (this.#isGone || !this.#plotly || !this.#host.isConnected) return;
    const picture = this.#picture();
    const fresh = !this.#host.classList.contains("js-plotly-plot");
    const { clientWidth: width, clientHeight } = this.#host;
    const layout = {
      ...themed(picture.layout, colours(this.#host)),
      width,
      height: picture.layout.height ?? clientHeight,
    };
    await this.#plotly.react(this.#host, picture.data, layout, CONFIG);
    if (!fresh) return;
    for (const [event, listener] of Object.entries(this.#listeners)) this.#host.on(event, listener);
    this.#listeners.plotly_afterplot?.(undefined);
  }
}

/**
 * An axis of time with round ticks.
 * @param {Axis} axis
 * @param {Window} window
 * @param {number} most how many ticks fit
 */
export function timeAxis(axis, window, most) {
  const { values, text } = timeTicks(...window, Math.max(most, 2));
  return { ...axis, range: window, tickvals: values, ticktext: text, tickformat: "", ticksuffix: "" };
}

/** @param {Picture["layout"]} layout @param {Colours} theme */
function themed(layout, theme) {
  /** @param {Axis} own */
  const axis = (own) => ({
    gridcolor: theme.grid,
    linecolor: theme.line,
    tickcolor: theme.line,
    tickfont: { color: theme.quiet, size: 11 },
    ...own,
    // Plotly writes a zoom into the array that it was given.
    range: [...own.range],
  });
  // A chart without axes must not have even an empty one.
  const axes = "xaxis" in layout ? { xaxis: axis(layout.xaxis), yaxis: axis(layout.yaxis) } : {};
  return {
    ...layout,
    ...axes,
    autosize: false,
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    font: { color: theme.text, family: theme.font, size: 11 },
    hoverlabel: {
      bgcolor: theme.raised,
      bordercolor: theme.quiet,
      align: "left",
      font: { color: theme.text, family: theme.font, size: 12 },
    },
    annotations: (layout.annotations ?? []).map((note) => ({ ...note, font: { ...note.font, color: theme.quiet } })),
  };
}
