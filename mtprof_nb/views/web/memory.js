// The memory tab: bytes held over time, and the largest allocations.

import { Chart } from "./chart.js";
import { h, settled } from "./dom.js";
import { timeTicks } from "./format.js";
import { escaped, fitted, plain } from "./label.js";
import { Table, sorted } from "./table.js";

/**
 * @import { MemoryFirst, MemoryWindow } from "./types/messages"
 * @import { PlaneTrace } from "./types/pictures"
 * @import { TabContext, TabView } from "./types/surroundings"
 */

const HELP = "Drag to zoom, double-click or key 0 for all";
/** What stands between a peak and its name, and the name and the axis. */
const PEAK_PIXELS = 12;

/** @param {TabContext<MemoryFirst>} context @returns {TabView} */
export function mount({ host, first, wire, store }) {
  const whole = first.picture.layout.xaxis.range;
  let view = whole;
  /** @type {MemoryWindow} */
  let shown = first;
  let asked = 0;
  const place = h("div", {
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
  const table = new Table({
    label: "Largest allocations",
    nameTitle: "Largest allocations",
    onsort: (key) => {
      table.sort = { key, descending: table.sort.key === key ? !table.sort.descending : key !== "label" };
      list();
    },
    onselect: (id, row) => {
      table.select(id, false);
      if (id !== null) store.pick(first.largest.event[row], first.largest.name[row]);
    },
  });
  table.sort = { key: "nbytes", descending: true };
  const all = h("button", {
    type: "button",
    class: "mtprof-button",
    text: "All",
    title: "Show the whole recording",
    onclick: () => go(whole),
  });
  const note = h("span", { class: "mtprof-count", text: HELP, title: HELP });
  host.append(
    h("div", { class: "mtprof-tools" }, all, note),
    h("div", { class: "mtprof-stage mtprof-split" }, place, table.element),
  );

  const chart = new Chart(place, wire);
  chart.on("plotly_relayout", (change) => {
    const [begin, end] = change["xaxis.range"] ?? [change["xaxis.range[0]"], change["xaxis.range[1]"]];
    if (begin !== undefined && end !== undefined) go([begin, end]);
  });
  chart.on("plotly_doubleclick", () => go(whole));

  function list() {
    table.fill(first.largest.columns, first.largest);
    table.show(sorted(table, first.largest, table.sort));
  }

  /** @param {[number, number]} window */
  function go(window) {
    view = window;
    draw();
    askSoon();
  }

  const askSoon = settled(async () => {
    const number = ++asked;
    const [begin_ns, end_ns] = view.map((second) => Math.round(second * 1e9));
    const answer = await wire.ask({ tab: "memory", ask: "window", begin_ns, end_ns });
    if (number !== asked) return;
    shown = answer;
    draw();
  }, 60);

  function draw() {
    const { margin } = shown.picture.layout;
    const ticks = timeTicks(...view, Math.max((chart.width - margin.l - margin.r) / 110, 2));
    const times = { range: view, tickvals: ticks.values, ticktext: ticks.text, tickformat: "", ticksuffix: "" };
    const layout = { ...shown.picture.layout, xaxis: { ...shown.picture.layout.xaxis, ...times } };
    return chart.draw({ data: shown.picture.data.map(fitting), layout });
  }

  wire.onchange(() => {
    const still = wire.silent && !wire.hasPlotly;
    all.disabled = still;
    note.hidden = still;
  });

  /**
   * The name of a peak on the side where there is room, cut where even that is too narrow.
   * @param {PlaneTrace} trace
   * @returns {PlaneTrace}
   */
  function fitting(trace) {
    if (trace.type !== "scatter" || trace.mode !== "markers+text") return trace;
    const { l, r } = shown.picture.layout.margin;
    const width = chart.width - l - r;
    const left = ((trace.x[0] - view[0]) / (view[1] - view[0])) * width;
    const room = Math.max(left, width - left);
    const font = `11px ${getComputedStyle(place).fontFamily}`;
    const text = trace.text.map((name) => escaped(fitted(plain(name, ""), room - PEAK_PIXELS, font)));
    return { ...trace, text, textposition: left > width / 2 ? "top left" : "top right" };
  }

  list();
  draw();
  const observer = new ResizeObserver(settled(() => host.hidden || draw(), 200));
  observer.observe(place);
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
