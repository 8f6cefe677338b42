// The memory tab: bytes held over time, and the largest allocations.

import { button, h, latest, settled } from "../dom.js";
import { timeTicks } from "../format.js";
import { escaped, fitted, plain } from "../label.js";
import { sorted } from "../tables/row_order.js";
import { Table } from "../tables/table.js";
import { Chart } from "./chart.js";

/**
 * @import { LargestAllocations, MemoryFirst, MemoryWindow } from "../types/messages"
 * @import { PlaneTrace } from "../types/pictures"
 * @import { TabContext, TabView } from "../types/surroundings"
 * @import { Store } from "../store.js"
 */

const HELP = "Drag to zoom, double-click or key 0 for all";
/** Pixels between a peak and its name, and between the name and the axis. */
const PEAK_PIXELS = 12;

/** @param {TabContext<MemoryFirst>} context @returns {TabView} */
export function mount({ host, first, wire, store }) {
  const whole = first.picture.layout.xaxis.range;
  let view = whole;
  /** @type {MemoryWindow} */
  let shown = first;
  const plot = h("div", {
    class: "mtprof-plot mtprof-fill",
    role: "group",
    tabindex: "0",
    "aria-label": `Allocated bytes over time. ${HELP}`,
    onkeydown: (event) => {
      if (event.key !== "0" || event.ctrlKey || event.metaKey) return;
      event.preventDefault();
      event.stopPropagation();
      go(whole);
    },
  });
  const table = largestTable(first.largest, store);
  const all = button({ text: "All", title: "Show the whole recording", onclick: () => go(whole) });
  const note = h("span", { class: "mtprof-count", text: HELP, title: HELP });
  host.append(
    h("div", { class: "mtprof-tools" }, all, note),
    h("div", { class: "mtprof-stage mtprof-split" }, plot, table.element),
  );
  const chart = new Chart(plot, wire);
  chart.onzoom((window) => go(window ?? whole));

  /** @param {[number, number]} window */
  function go(window) {
    view = window;
    draw();
    askSoon();
  }

  const ask = latest(() => {
    const [begin_ns, end_ns] = view.map((second) => Math.round(second * 1e9));
    return wire.ask({ tab: "memory", ask: "window", begin_ns, end_ns });
  });
  const askSoon = settled(async () => {
    const answer = await ask();
    if (!answer) return;
    shown = answer;
    draw();
  }, 60);

  function draw() {
    const { layout, data } = shown.picture;
    const width = chart.width - layout.margin.l - layout.margin.r;
    const ticks = timeTicks(...view, Math.max(width / 110, 2));
    const times = { range: view, tickvals: ticks.values, ticktext: ticks.text, tickformat: "", ticksuffix: "" };
    const font = `11px ${getComputedStyle(plot).fontFamily}`;
    const fitting = data.map((trace) => withFittingName(trace, view, width, font));
    return chart.draw({ data: fitting, layout: { ...layout, xaxis: { ...layout.xaxis, ...times } } });
  }

  wire.onchange(() => {
    const still = wire.silent && !wire.hasPlotly;
    all.disabled = still;
    note.hidden = still;
  });
  draw();
  const observer = new ResizeObserver(settled(() => host.hidden || draw(), 200));
  observer.observe(plot);
  return {
    restyle: () => chart.restyle(),
    shown: () => chart.restyle(),
    destroy: () => {
      observer.disconnect();
      chart.destroy();
      table.destroy();
    },
  };
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
 * @param {[number, number]} view
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
