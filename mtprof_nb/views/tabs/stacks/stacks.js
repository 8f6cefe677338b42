// The stacks tab: icicle or sunburst, sized by what the user chooses.

import { button, choiceBy, h, latest } from "../../web/dom.js";
import { foldedChart } from "./folding.js";
import { litByName, litByRows, litWhere } from "./slices.js";
import { searched } from "../../web/search.js";
import { StackDrawing } from "./stack_drawing.js";

/**
 * @import { StackChart, StacksFirst } from "../../web/types/messages"
 * @import { TabContext, TabView } from "../../web/types/surroundings"
 * @import { DrawnChart } from "./folding.js"
 * @import { Shape } from "./stack_drawing.js"
 */

/** @type {{ key: Shape, title: string }[]} */
const SHAPES = [
  { key: "icicle", title: "Icicle" },
  { key: "sunburst", title: "Sunburst" },
];
const HELP = "Click to zoom, click again to go back";
const LIBRARIES = "Show each frame of libraries. A click on a folded library opens it alone";

/** @param {TabContext<StacksFirst>} context @returns {TabView} */
export const mount = (context) => new StacksView(context);

class StacksView {
  #wire;
  #store;
  #first;
  /** @type {StackChart} */
  #shown;
  /** @type {DrawnChart} */
  #drawn;
  /** @type {Set<number> | null} libraries that a click opened, by the id of their slices; null opens all */
  #opened;
  #wanted;
  #metric;
  #drawing;
  #askLatest = latest(() => this.#wantedChart());

  /** @param {TabContext<StacksFirst>} context */
  constructor({ host, first, wire, store }) {
    this.#wire = wire;
    this.#store = store;
    this.#first = first;
    this.#shown = first;
    this.#opened = first.folds ? new Set() : null;
    this.#drawn = foldedChart(first, this.#opened);
    this.#wanted = first.metric;
    this.#metric = choiceBy("Size by", first.metrics, (metric) => this.#resize(metric));
    this.#drawing = new StackDrawing(host, {
      chart: this.#drawn,
      fills: first.fills,
      shape: "icicle",
      onpick: (slice) => this.#pick(slice),
      onopen: (slice) => this.#open(slice),
    });
    const note = h("span", { class: "mtprof-count", title: first.note || HELP, text: first.note || HELP });
    const shapes = shapeButtons("icicle", (shape) => this.#reshape(shape));
    const libraries = first.slices.library.some(Boolean) ? this.#libraries() : null;
    host.append(
      h("div", { class: "mtprof-tools" }, shapes, this.#metric.field, libraries, note),
      this.#drawing.element,
    );
    wire.onchange(() => this.#followKernel());
    store.on("seek", () => this.#show(this.#shown));
    if (store.selection) this.renew();
    else if (store.search.text) this.#show(first);
  }

  #followKernel() {
    const { silent } = this.#wire;
    this.#metric.select.disabled = silent;
    if (silent) this.#metric.select.value = this.#wanted = this.#shown.metric;
  }

  restyle() {
    this.#drawing.draw();
  }

  print() {
    this.#drawing.draw();
  }

  destroy() {
    this.#drawing.destroy();
  }

  async renew() {
    this.#show(this.#litByName());
    const chart = await this.#askLatest();
    if (chart) this.#show(chart);
  }

  /** The chart of the wanted metric with the selection lit; null without an answer of Python. @returns {Promise<StackChart | null>} */
  async #wantedChart() {
    const { selection, chosen } = this.#store;
    const metric = this.#wanted;
    const chart =
      metric === this.#first.metric ? this.#first : await this.#wire.once({ tab: "stacks", ask: "chart", metric });
    if (!chart || !selection) return chart;
    const pairs = await this.#wire.once({ tab: "stacks", ask: "lit", metric, grouping: selection.grouping });
    return pairs && { ...chart, slices: { ...chart.slices, lit: litByRows(chart.slices, pairs, chosen) } };
  }

  /** @param {StackChart} chart */
  #show(chart) {
    if (this.#opened && chart.metric !== this.#shown.metric) this.#opened.clear();
    this.#shown = chart;
    this.#drawn = foldedChart(this.#withSearch(chart), this.#opened);
    this.#drawing.show(this.#drawn);
  }

  /** The chart with the slices lit whose names hold what is searched. @param {StackChart} chart @returns {StackChart} */
  #withSearch(chart) {
    const { search } = this.#store;
    if (!search.text) return chart;
    const { holds } = searched(search);
    const lit = litWhere(chart.slices, (slice) => slice > 0 && holds(chart.slices.full[slice]));
    return { ...chart, slices: { ...chart.slices, lit } };
  }

  /** A button that opens all libraries, or folds them again. */
  #libraries() {
    const toggle = button({ title: LIBRARIES, text: "Library frames", "aria-pressed": String(!this.#opened) });
    toggle.addEventListener("click", () => {
      this.#opened = this.#opened ? null : new Set();
      toggle.setAttribute("aria-pressed", String(!this.#opened));
      this.#show(this.#shown);
    });
    return toggle;
  }

  /** @param {number} slice of a folded library */
  #open(slice) {
    this.#opened?.add(this.#drawn.slices.id[slice]);
    this.#show(this.#shown);
  }

  /** The chart with a selected row lit by the name of its ops: until Python has answered, and without Python. */
  #litByName() {
    const { selection } = this.#store;
    const { slices } = this.#shown;
    const lit = selection && selection.name >= 0 ? litByName(slices, selection.name) : null;
    return { ...this.#shown, slices: { ...slices, lit } };
  }

  /** @param {string} metric */
  #resize(metric) {
    this.#wanted = metric;
    this.renew();
  }

  /** @param {Shape} shape */
  #reshape(shape) {
    this.#drawing.shape = shape;
    this.#drawing.draw();
  }

  /** @param {number} slice */
  #pick(slice) {
    const { event, name, line } = this.#drawn.slices;
    if (event[slice] >= 0) this.#store.emit("pick", { event: event[slice], name: name[slice], line: line[slice] });
  }
}

/** @param {Shape} chosen @param {(shape: Shape) => void} onchoose */
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
