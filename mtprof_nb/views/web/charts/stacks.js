// The stacks tab: icicle or sunburst, sized by what the user chooses.

import { button, choiceBy, h, latest } from "../dom.js";
import { escaped, fitted, plain } from "../label.js";
import { colours } from "../theme.js";
import { Chart } from "./chart.js";

/**
 * @import { StackChart, StacksFirst } from "../types/messages"
 * @import { TreeShape, TreeTrace } from "../types/pictures"
 * @import { Plotted, PointClick, TabContext, TabView } from "../types/surroundings"
 */

/** @type {{ key: TreeShape, title: string }[]} */
const SHAPES = [
  { key: "icicle", title: "Icicle" },
  { key: "sunburst", title: "Sunburst" },
];
const FONT_PIXELS = 11;
/** Pixels that plotly leaves free beside a name. */
const INSET = 10;

/** @param {TabContext<StacksFirst>} context @returns {TabView} */
export const mount = (context) => new StacksView(context);

class StacksView {
  #first;
  #wire;
  #store;
  /** @type {StackChart} the last chart from Python */
  #shown;
  #wanted;
  #metric;
  #shapes;
  #note;
  #plot = h("div", { class: "mtprof-plot mtprof-fill", role: "img", "aria-label": "Stacks: who called whom" });
  #chart;
  #askLatest = latest(() =>
    this.#wire.ask({ tab: "stacks", ask: "chart", ...this.#wanted, selected: this.#store.selected }),
  );

  /** @param {TabContext<StacksFirst>} context */
  constructor({ host, first, wire, store }) {
    this.#first = first;
    this.#wire = wire;
    this.#store = store;
    this.#shown = first;
    this.#wanted = { metric: first.metric, shape: first.shape };
    this.#metric = choiceBy("Size by", first.metrics, (metric) => this.#want({ metric }));
    this.#shapes = shapeButtons(first.shape, (shape) => this.#want({ shape }));
    this.#note = h("span", { class: "mtprof-count", title: first.note });
    this.#chart = new Chart(this.#plot, wire, () => this.#picture());
    const tools = h("div", { class: "mtprof-tools" }, this.#shapes, this.#metric.field, this.#note);
    host.append(tools, h("div", { class: "mtprof-stage" }, this.#plot));
    this.#listen();
    this.#chart.draw();
    if (store.selection) this.renew();
  }

  #listen() {
    /** @param {PointClick} event */
    const pick = ({ points }) => {
      const [event, name] = points[0].customdata ?? [-1, -1];
      if (event >= 0) this.#store.pick(event, name);
    };
    this.#chart.on("plotly_icicleclick", pick);
    this.#chart.on("plotly_sunburstclick", pick);
    // Slices are wider now, or narrower.
    this.#chart.on("plotly_animated", () => this.#chart.draw());
    this.#wire.onchange(() => this.#followKernel());
  }

  #followKernel() {
    const { silent, isSketched } = this.#wire;
    this.#note.textContent = this.#first.note || (isSketched ? "" : "Click to zoom, click the root to go back");
    for (const shape of this.#shapes.querySelectorAll("button")) shape.disabled = isSketched;
    this.#metric.select.disabled = silent;
    if (silent) this.#metric.select.value = this.#shown.metric;
  }

  restyle() {
    this.#chart.draw();
  }

  destroy() {
    this.#chart.destroy();
  }

  async renew() {
    const answer = await this.#askLatest();
    if (answer) this.#show(answer);
  }

  /** @param {StackChart} chart */
  #show(chart) {
    this.#shown = chart;
    this.#chart.draw();
  }

  /** @param {{ metric?: string, shape?: TreeShape }} change */
  #want(change) {
    this.#wanted = { ...this.#wanted, ...change };
    // The same slices in the other shape need no answer.
    if (change.shape) this.#reshape(change.shape);
    this.renew();
  }

  /** @param {TreeShape} shape */
  #reshape(shape) {
    const { picture } = this.#shown;
    const data = picture.data.map((trace) => ({ ...trace, type: shape }));
    this.#show({ ...this.#shown, picture: { ...picture, data } });
  }

  #picture() {
    const { metric, picture } = this.#shown;
    const { margin, uniformtext } = picture.layout;
    const width = this.#plot.clientWidth - margin.l - margin.r;
    const data = picture.data.map((trace) => withFittingNames(trace, this.#plot, metric, width));
    // Names of an icicle are cut to fit, so that none need be smaller for another's sake.
    const minsize = data[0].type === "icicle" ? FONT_PIXELS : uniformtext.minsize;
    // While slices mean the same, plotly stays at the one that the user zoomed to.
    return { data, layout: { ...picture.layout, uniformtext: { ...uniformtext, minsize }, uirevision: metric } };
  }
}

/** @param {TreeShape} chosen @param {(shape: TreeShape) => void} onchoose */
function shapeButtons(chosen, onchoose) {
  const buttons = SHAPES.map(({ key, title }) => {
    const onclick = () => {
      for (const other of buttons) other.setAttribute("aria-pressed", String(other.dataset.key === key));
      onchoose(key);
    };
    const state = { "aria-pressed": String(key === chosen), text: title, onclick, "data-key": key };
    return button({ class: "mtprof-choice-option", ...state });
  });
  return h("div", { class: "mtprof-choice", role: "group", "aria-label": "Shape" }, ...buttons);
}

/**
 * A trace in the colours of the page, with names that fit: plotly leaves a name out where it is a little too long.
 * @param {TreeTrace} trace
 * @param {HTMLElement} plot
 * @param {string} metric
 * @param {number} width of the plot, in pixels
 */
function withFittingNames(trace, plot, metric, width) {
  const theme = colours(plot);
  const marker = { ...trace.marker, line: { ...trace.marker.line, color: theme.paper } };
  const names = trace.labels.map((label) => plain(label, ""));
  if (trace.type !== "icicle") return { ...trace, marker, text: names.map(escaped), textinfo: "text" };
  const drawn = /** @type {Plotted} */ (plot)._fullData?.[0];
  const top = Math.max(drawn?.uirevision === metric ? trace.ids.indexOf(drawn.level) : 0, 0);
  const scale = width / trace.values[top];
  const font = `${FONT_PIXELS}px ${theme.font}`;
  const text = names.map((name, at) =>
    escaped(fitted(name, Math.min(trace.values[at], trace.values[top]) * scale - INSET, font)),
  );
  return { ...trace, marker, text, textinfo: "text" };
}
