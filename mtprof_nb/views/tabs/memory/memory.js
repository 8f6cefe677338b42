// The memory tab: bytes held over time, and the largest allocations.

import { button, choiceBy, h, latest, legend, settled } from "../../web/dom.js";
import { shortLocation } from "../../web/label.js";
import { rowFilter } from "../../web/tables/row_filter.js";
import { sorted } from "../../web/tables/row_order.js";
import { Table } from "../../web/tables/table.js";
import {
  COLOURS,
  heldAt,
  isOf,
  paintByteAxis,
  paintByteGrid,
  paintCurves,
  paintPeaks,
  paintSelected,
} from "./curve.js";
import { memoryWindow } from "./memory_windows.js";
import { TimeChart } from "../../web/drawing/time_chart.js";

/**
 * @import { LargestAllocations, MemoryFirst, MemoryWindow } from "./memory_types"
 * @import { TabContext, TabView } from "../../web/types/surroundings"
 * @import { Store } from "../../web/store.js"
 */

const MARGIN = { left: 72, right: 14, top: 8, bottom: 24 };
const HELP = "Drag to zoom, double-click or key 0 for all";

/** @param {TabContext<MemoryFirst>} context @returns {TabView} */
export const mount = (context) => new MemoryView(context);

class MemoryView {
  #first;
  #wire;
  #store;
  /** @type {MemoryWindow} the last window */
  #drawn;
  /** The position of the curve that is shown alone, -1 for all. */
  #device;
  /** @type {HTMLElement} */
  #legend = h("div");
  #chart;
  #table;
  #askSoon = settled(() => this.#ask(), 60);
  #askLatest = latest(async () => {
    const [begin_ns, end_ns] = this.#chart.window.map(Math.round);
    const whole = await this.#wire.once({ tab: "memory", ask: "whole" });
    return whole
      ? memoryWindow(whole, begin_ns, end_ns)
      : this.#wire.ask({ tab: "memory", ask: "window", begin_ns, end_ns });
  });

  /** @param {TabContext<MemoryFirst>} context */
  constructor({ host, first, wire, store }) {
    this.#first = first;
    this.#wire = wire;
    this.#store = store;
    this.#drawn = first;
    this.#device = first.device;
    this.#table = largestTable(first.largest, store);
    this.#chart = new TimeChart(host, {
      label: `Allocated bytes over time. ${HELP}`,
      whole: first.whole_ns,
      margin: MARGIN,
      layers: [paintByteGrid, paintCurves, paintPeaks, paintSelected].map(
        (paint) => (plane) => paint(plane, this.#shown(), store.selection),
      ),
      frames: [(plane) => paintByteAxis(plane, this.#shown())],
      probe: (plane, x, y) => heldAt(plane, this.#shown(), x, y),
      onwindow: () => this.#follow(),
      onpick: (picked) => store.emit("pick", picked),
      keys: { Escape: () => store.select(null) },
    });
    const split = h("div", { class: "mtprof-stage mtprof-split" }, this.#chart.element, this.#table.element);
    host.append(this.#tools(), split);
    if (store.selection) this.renew();
  }

  /** Marks the changes, and the allocations, of what is selected. */
  renew() {
    const { largest } = this.#first;
    const chosen = isOf(largest, this.#store.selection);
    this.#table.light(largest.id.filter((_, at) => chosen(at)));
    this.#chart.draw();
  }

  #tools() {
    const onclick = () => this.#chart.go(this.#chart.whole);
    const all = button({ text: "All", title: "Show the whole recording", onclick });
    const note = h("span", { class: "mtprof-count", text: HELP, title: HELP });
    this.#show(this.#device);
    return h("div", { class: "mtprof-tools" }, all, this.#choice(), this.#legend, note);
  }

  /** A list of the devices, to show one alone with its kinds of memory; null for one device. */
  #choice() {
    const { curves } = this.#first;
    if (curves.length < 2) return null;
    const devices = curves.map(({ title }, at) => ({ key: String(at), title }));
    const options = [{ key: "-1", title: "all devices" }, ...devices];
    const { select } = choiceBy("Device", options, (key) => this.#show(Number(key)));
    select.value = String(this.#device);
    return select;
  }

  /** Shows one curve alone, or all of them. @param {number} device */
  #show(device) {
    this.#device = device;
    const { curves } = this.#shown();
    const devices = curves.map(({ title }, at) => ({ title, colour: COLOURS[at % COLOURS.length] }));
    const next = curves.length > 1 ? legend(devices, "Devices") : legend(curves[0].kinds, "Kinds of memory");
    next.hidden = next.children.length === 0;
    this.#legend.replaceWith(next);
    this.#legend = next;
    this.#chart.draw();
  }

  /** The last window, with the curves that are shown. */
  #shown() {
    const { curves } = this.#drawn;
    return this.#device < 0 ? this.#drawn : { ...this.#drawn, curves: [curves[this.#device]] };
  }

  restyle() {
    this.#chart.draw();
  }

  /** @param {boolean} isOn */
  print(isOn) {
    this.#chart.print();
    this.#table.print(isOn);
  }

  destroy() {
    this.#chart.destroy();
    this.#table.destroy();
  }

  /** Another window is in view: it is drawn from what is here until its detail has come. */
  #follow() {
    const [begin, end] = this.#chart.window;
    const [from, to] = this.#drawn.drawn_ns;
    if (begin < from || end > to) this.#drawn = this.#first;
    this.#askSoon();
  }

  async #ask() {
    const answer = await this.#askLatest();
    if (!answer) return;
    this.#drawn = answer;
    this.#chart.draw();
  }
}

/** @param {LargestAllocations} largest @param {Store} store */
function largestTable(largest, store) {
  const list = () => {
    const { matches } = rowFilter(largest, store.search);
    table.fill(largest.columns, largest);
    table.show(sorted(table, largest, table.sort).filter(matches), `No name holds “${store.search.text}”.`);
  };
  store.on("seek", list);
  const table = new Table({
    label: "Largest allocations",
    nameTitle: "Largest allocations",
    detailOf: (detail, row) => (largest.line[row] >= 0 ? shortLocation(detail) : detail),
    onsort: list,
    onselect: (id, row) => {
      table.select(id, false);
      const [event, name, line] = [largest.event[row], largest.name[row], largest.line[row]];
      if (id !== null) store.emit("pick", { event, name, line });
    },
  });
  table.sort = { key: "nbytes", descending: true };
  list();
  return table;
}
