// The memory tab: bytes held over time, and the largest allocations.

import { button, h, latest, settled } from "../dom.js";
import { escaped, fitted, plain } from "../label.js";
import { sorted } from "../tables/row_order.js";
import { Table } from "../tables/table.js";
import { Chart, timeAxis } from "./chart.js";

/**
 * @import { LargestAllocations, MemoryFirst } from "../types/messages"
 * @import { PlanePicture, PlaneTrace } from "../types/pictures"
 * @import { TabContext, TabView } from "../types/surroundings"
 * @import { Store } from "../store.js"
 * @import { Window } from "./chart.js"
 */

const HELP = "Drag to zoom, double-click or key 0 for all";
/** Pixels between a peak and its name, and between the name and the axis. */
const PEAK_PIXELS = 12;

/** @param {TabContext<MemoryFirst>} context @returns {TabView} */
export const mount = (context) => new MemoryView(context);

class MemoryView {
  #wire;
  #whole;
  #view;
  /** @type {PlanePicture} the last picture from Python */
  #drawn;
  #plot = h("div", {
    class: "mtprof-plot mtprof-fill",
    role: "group",
    tabindex: "0",
    "aria-label": `Allocated bytes over time. ${HELP}`,
    onkeydown: (event) => this.#key(event),
  });
  #chart;
  #table;
  #askSoon = settled(() => this.#ask(), 60);
  #askLatest = latest(() => {
    const [begin_ns, end_ns] = this.#view.map((second) => Math.round(second * 1e9));
    return this.#wire.ask({ tab: "memory", ask: "window", begin_ns, end_ns });
  });

  /** @param {TabContext<MemoryFirst>} context */
  constructor({ host, first, wire, store }) {
    this.#wire = wire;
    this.#drawn = first.picture;
    this.#whole = first.picture.layout.xaxis.range;
    this.#view = this.#whole;
    this.#table = largestTable(first.largest, store);
    this.#chart = new Chart(this.#plot, wire, () => this.#picture());
    this.#chart.onzoom((window) => this.#go(window ?? this.#whole));
    host.append(this.#tools(), h("div", { class: "mtprof-stage mtprof-split" }, this.#plot, this.#table.element));
    this.#chart.draw();
  }

  #tools() {
    const all = button({ text: "All", title: "Show the whole recording", onclick: () => this.#go(this.#whole) });
    const note = h("span", { class: "mtprof-count", text: HELP, title: HELP });
    this.#wire.onchange(() => (all.disabled = note.hidden = this.#wire.isSketched));
    return h("div", { class: "mtprof-tools" }, all, note);
  }

  restyle() {
    this.#chart.draw();
  }

  destroy() {
    this.#chart.destroy();
    this.#table.destroy();
  }

  /** @param {Window} window */
  #go(window) {
    this.#view = window;
    this.#chart.draw();
    this.#askSoon();
  }

  async #ask() {
    const answer = await this.#askLatest();
    if (!answer) return;
    this.#drawn = answer.picture;
    this.#chart.draw();
  }

  #picture() {
    const { layout, data } = this.#drawn;
    const width = this.#plot.clientWidth - layout.margin.l - layout.margin.r;
    const font = `11px ${getComputedStyle(this.#plot).fontFamily}`;
    return {
      data: data.map((trace) => withFittingName(trace, this.#view, width, font)),
      layout: { ...layout, xaxis: timeAxis(layout.xaxis, this.#view, width / 110) },
    };
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    if (event.key !== "0" || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    event.stopPropagation();
    this.#go(this.#whole);
  }
}

/** @param {LargestAllocations} largest @param {Store} store */
function largestTable(largest, store) {
  const list = () => {
    table.fill(largest.columns, largest);
    table.show(sorted(table, largest, table.sort));
  };
  const table = new Table({
    label: "Largest allocations",
    nameTitle: "Largest allocations",
    onsort: list,
    onselect: (id, row) => {
      table.select(id, false);
      if (id !== null) store.pick(largest.event[row], largest.name[row]);
    },
  });
  table.sort = { key: "nbytes", descending: true };
  list();
  return table;
}

/**
 * The trace of a peak with its name on the side where there is more room, cut to fit; any other trace as it is.
 * @param {PlaneTrace} trace
 * @param {Window} view
 * @param {number} width of the plot, in pixels
 * @param {string} font
 * @returns {PlaneTrace}
 */
function withFittingName(trace, view, width, font) {
  if (trace.type !== "scatter" || trace.mode !== "markers+text") return trace;
  const left = ((trace.x[0] - view[0]) / (view[1] - view[0])) * width;
  const room = Math.max(left, width - left);
  const text = trace.text.map((name) => escaped(fitted(plain(name, ""), room - PEAK_PIXELS, font)));
  return { ...trace, text, textposition: left > width / 2 ? "top left" : "top right" };
}
