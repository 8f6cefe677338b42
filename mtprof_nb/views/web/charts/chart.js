// A plotly chart that follows theme and width of its element, and shows a sketch until plotly is loaded.

import { sketch } from "./sketch.js";
import { colours } from "../theme.js";

/**
 * @import { Axis, Picture } from "../types/pictures"
 * @import { Plotly, PlotlyEvents, PlotlyListeners, Plotted } from "../types/surroundings"
 * @import { Colours } from "../theme.js"
 */

const CONFIG = { displayModeBar: false, displaylogo: false, doubleClick: false, scrollZoom: false, showTips: false };

export class Chart {
  #host;
  #wire;
  /** @type {Plotly | null} */
  #plotly = null;
  /** @type {PlotlyListeners} */
  #listeners = {};
  #drawing = Promise.resolve();
  /** @type {Picture | null} */
  #picture = null;
  #observer;

  /** @param {HTMLElement} host @param {import("../wire.js").Wire} wire */
  constructor(host, wire) {
    this.#host = /** @type {Plotted} */ (host);
    this.#wire = wire;
    let width = 0;
    this.#observer = new ResizeObserver(() => {
      if (!this.#picture || !host.clientWidth || host.clientWidth === width) return;
      width = host.clientWidth;
      this.#redraw();
    });
    this.#observer.observe(host);
  }

  get width() {
    return this.#host.clientWidth;
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
   * @param {(window: [number, number] | null) => void} listener
   */
  onzoom(listener) {
    this.on("plotly_relayout", (change) => {
      const [begin, end] = change["xaxis.range"] ?? [change["xaxis.range[0]"], change["xaxis.range[1]"]];
      if (begin !== undefined && end !== undefined) listener([begin, end]);
    });
    this.on("plotly_doubleclick", () => listener(null));
  }

  /**
   * Draws `picture` in place of the last one.
   * @param {Picture} picture
   */
  draw(picture) {
    this.#picture = picture;
    return this.#redraw();
  }

  /** Draws the last picture once more, in the present colours of the page. */
  restyle() {
    return this.#picture ? this.#redraw() : Promise.resolve();
  }

  destroy() {
    this.#observer.disconnect();
    this.#picture = null;
    this.#plotly?.purge(this.#host);
  }

  #redraw() {
    if (!this.#picture || !this.#host.clientWidth) return this.#drawing;
    if (this.#plotly) {
      // One after the other: plotly must not be asked to draw while it draws.
      this.#drawing = this.#drawing.then(() => this.#react());
      return this.#drawing;
    }
    this.#host.replaceChildren(sketch(this.#picture, this.#host.clientWidth, this.#host.clientHeight));
    this.#wire.plotly().then((plotly) => {
      if (this.#plotly || !this.#picture) return;
      this.#plotly = plotly;
      this.#host.replaceChildren();
      this.#redraw();
    });
    return this.#drawing;
  }

  async #react() {
    // A picture that arrives while the user draws a zoom box would take the box away.
    while (this.#host._dragging) await new Promise((resolve) => setTimeout(resolve, 40));
    const picture = this.#picture;
    if (!picture || !this.#plotly || !this.#host.isConnected) return;
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
 * @param {Picture["layout"]} layout
 * @param {Colours} theme
 */
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
