// The timeline tab: zoom and pan; Python sends the level of detail that each window needs.

import { Chart } from "./chart.js";
import { h, legend, settled, svg } from "./dom.js";
import { duration, number, timeTicks } from "./format.js";

/**
 * @import { TimelineFirst, TimelineWindow } from "./types/messages"
 * @import { BarTrace, MarkTrace, NameTrace, PlaneLayout, PlaneTrace } from "./types/pictures"
 * @import { BoundElement, Plotted, TabContext, TabView } from "./types/surroundings"
 * @typedef {[begin: number, end: number]} Window in seconds since the recording began
 */

const SHORTEST_S = 50e-9;
const TALLEST_ROW = 30;
const HELP =
  "Drag to zoom, double-click for all, Ctrl + wheel zooms, Shift + wheel pans; keys: arrows, + and -, 0 for all";

/** @param {TabContext<TimelineFirst>} context @returns {TabView & { state(): object }} */
export function mount({ host, first, wire, store }) {
  /** @type {Window} */
  const whole = [0, first.whole_s];
  /** @type {TimelineWindow} */
  let shown = first;
  let view = whole;
  let asked = 0;

  const place = h("div", { class: "mtprof-plot" });
  const scroll = h(
    "div",
    { class: "mtprof-stage mtprof-scroll", role: "group", tabindex: "0", "aria-label": `Timeline. ${HELP}` },
    place,
  );
  const status = h("span", { class: "mtprof-count", role: "status" });
  const overview = new Overview(first.busy, whole, (window) => go(window));
  /** @param {string} text @param {string} label @param {() => void} act */
  const button = (text, label, act) =>
    h("button", { type: "button", class: "mtprof-button", "aria-label": label, title: label, text, onclick: act });
  let dragging = "zoom";
  const drag = button("Pan", "Drag moves the window instead of zooming", () => {
    dragging = dragging === "zoom" ? "pan" : "zoom";
    drag.setAttribute("aria-pressed", String(dragging === "pan"));
    draw();
  });
  drag.setAttribute("aria-pressed", "false");
  const tools = [
    button("+", "Zoom in", () => zoom(0.5)),
    button("−", "Zoom out", () => zoom(2)),
    button("All", "Show the whole recording", () => go(whole)),
    drag,
  ];
  host.append(h("div", { class: "mtprof-tools" }, ...tools, overview.element, status), scroll, legend(first.legend));

  const { margin, height: least, yaxis } = first.picture.layout;
  let [height, rows] = [least, yaxis.range[0]];

  /** The plot fills its place: a few rows are drawn taller and leave the rest blank, many rows scroll. */
  function fill() {
    height = Math.max(least, scroll.clientHeight - 2);
    const rowPixels = Math.min((height - margin.t - margin.b) / yaxis.range[0], TALLEST_ROW);
    rows = (height - margin.t - margin.b) / rowPixels;
    place.style.height = `${height}px`;
  }

  const chart = new Chart(place, wire);
  chart.on("plotly_relayout", (change) => {
    const [begin, end] = change["xaxis.range"] ?? [change["xaxis.range[0]"], change["xaxis.range[1]"]];
    if (begin !== undefined && end !== undefined) go([begin, end]);
  });
  chart.on("plotly_doubleclick", () => go(whole));
  chart.on("plotly_click", ({ points }) => {
    const [event, name] = points[0].customdata ?? [];
    if (event !== undefined && name !== undefined) store.pick(event, name);
  });

  /** @param {Window} window */
  function go([begin, end]) {
    const length = Math.min(Math.max(end - begin, SHORTEST_S), whole[1]);
    const from = Math.min(Math.max(begin, 0), whole[1] - length);
    view = [from, from + length];
    draw();
    askSoon();
  }

  /** @param {number} factor */
  function zoom(factor, at = (view[0] + view[1]) / 2) {
    go([at - (at - view[0]) * factor, at + (view[1] - at) * factor]);
  }

  /** @param {number} part of the window's length */
  const pan = (part) => go([view[0] + (view[1] - view[0]) * part, view[1] + (view[1] - view[0]) * part]);

  async function ask() {
    const number = ++asked;
    const [begin_ns, end_ns] = view.map((second) => Math.round(second * 1e9));
    const pixels = Math.round(room());
    const answer = await wire.ask({
      tab: "timeline",
      ask: "window",
      begin_ns,
      end_ns,
      pixels,
      selected: store.selected,
    });
    if (number !== asked) return;
    shown = answer;
    draw();
  }
  const askSoon = settled(ask, 60);

  function draw() {
    // Until the answer comes, a window that reaches beyond what is here is drawn from the picture of the whole.
    if (view[0] < shown.drawn_s[0] || view[1] > shown.drawn_s[1]) shown = first;
    const ticks = timeTicks(...view, Math.max(room() / 90, 2));
    const { xaxis, yaxis } = shown.picture.layout;
    const times = { range: view, tickvals: ticks.values, ticktext: ticks.text, tickformat: "", ticksuffix: "" };
    /** @type {PlaneLayout} */
    const layout = {
      ...shown.picture.layout,
      dragmode: dragging,
      height,
      yaxis: { ...yaxis, range: [rows, 0] },
      xaxis: { ...xaxis, ...times },
    };
    overview.show(view);
    const span = h("span", { class: "mtprof-word", text: `${duration((view[1] - view[0]) * 1e9)}: ` });
    const blocks = h("span", { class: "mtprof-word", text: `, ${number(shown.drawn)} blocks` });
    status.replaceChildren(span, `${number(shown.held)} events`, blocks);
    status.title = status.textContent;
    return chart.draw({ data: fitting(wire.live ? shown.picture.data : dimmed(shown.picture.data)), layout });
  }

  const room = () => Math.max(chart.width - margin.l - margin.r, 100);

  /**
   * Names were cut for a width; where the chart is narrower they would run into each other.
   * @param {PlaneTrace[]} data
   */
  function fitting(data) {
    const scale = room() / (view[1] - view[0]);
    return scale > 0.9 * shown.pixels_per_s
      ? data
      : data.filter((trace) => trace.type === "bar" || trace.mode !== "text");
  }

  /**
   * Without Python a block is known by its longest event alone. As in Python's pictures, only lit blocks are named.
   * @param {PlaneTrace[]} data
   */
  function dimmed(data) {
    const selected = store.selection?.name ?? -1;
    const events = /** @type {BarTrace | undefined} */ (data.find((trace) => "customdata" in trace));
    if (selected < 0 || !events?.customdata) return data;
    const lit = events.customdata.map(([, name]) => name === selected);
    /** @param {number} x @param {number} y */
    const named = (x, y) =>
      lit.some(
        (is, at) =>
          is && events.base[at] <= x && x <= events.base[at] + events.x[at] && Math.abs(events.y[at] - y) < 0.5,
      );
    return data.map((trace) => {
      if (trace === events)
        return { ...trace, marker: { ...trace.marker, opacity: lit.map((is) => (is ? 1 : first.dimmed)) } };
      if (trace.name.startsWith("phase")) return trace;
      const marks = /** @type {NameTrace | MarkTrace} */ (trace);
      return chosen(
        marks,
        marks.x.map((x, at) => named(x, marks.y[at])),
      );
    });
  }

  chart.on("plotly_afterplot", () => {
    exact(/** @type {Plotted} */ (place));
    // Lane titles are cut to fit; the whole name shows on hover.
    /** @type {NodeListOf<SVGTextElement>} */
    const titles = place.querySelectorAll(".yaxislayer-above .ytick text");
    titles.forEach((tick, at) => {
      tick.style.pointerEvents = "all";
      tick.append(svg("title", { text: first.lanes[at] ?? "" }));
    });
  });

  scroll.addEventListener(
    "wheel",
    (event) => {
      if (!event.ctrlKey && !event.metaKey && !event.altKey && !event.shiftKey) return;
      event.preventDefault();
      const steps = Math.sign(event.deltaY || event.deltaX);
      if (event.shiftKey) return pan(0.15 * steps);
      const { l, r } = margin;
      const box = place.getBoundingClientRect();
      const part = Math.min(Math.max((event.clientX - box.left - l) / (box.width - l - r), 0), 1);
      zoom(steps > 0 ? 1.4 : 1 / 1.4, view[0] + part * (view[1] - view[0]));
    },
    { passive: false },
  );
  scroll.addEventListener("keydown", (event) => {
    /** @type {Record<string, () => void>} */
    const acts = {
      ArrowLeft: () => pan(-0.2),
      ArrowRight: () => pan(0.2),
      "+": () => zoom(0.5),
      "=": () => zoom(0.5),
      "-": () => zoom(2),
      0: () => go(whole),
      Escape: () => store.select(null),
    };
    if (!(event.key in acts) || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    event.stopPropagation();
    acts[event.key]();
  });

  wire.onchange(() => (drag.disabled = wire.silent && !wire.hasPlotly));

  let stale = false;
  const renew = () => {
    stale = false;
    if (wire.live) ask();
    else draw();
  };
  store.onselect(() => {
    if (host.hidden) stale = true;
    else renew();
  });
  fill();
  draw();
  // The first picture was made for a width that is seldom ours.
  ask();
  const refill = () => {
    if (host.hidden) return;
    fill();
    draw();
    ask();
  };
  const observer = new ResizeObserver(settled(refill, 200));
  observer.observe(scroll);
  return {
    restyle: () => chart.restyle(),
    shown: () => (stale ? renew() : chart.restyle()),
    destroy: () => {
      observer.disconnect();
      chart.destroy();
    },
    /** For tests: what is drawn at present. */
    state: () => ({ view, drawn: shown.drawn, held: shown.held }),
  };
}

/**
 * A trace of names, or of marks, with only some of them.
 * @param {NameTrace | MarkTrace} trace
 * @param {boolean[]} kept
 * @returns {NameTrace | MarkTrace}
 */
function chosen(trace, kept) {
  /**
   * @template Item
   * @param {Item[]} column
   */
  const some = (column) => column.filter((_, at) => kept[at]);
  const [x, y] = [some(trace.x), some(trace.y)];
  if (trace.mode === "markers") {
    const line = { ...trace.marker.line, color: some(trace.marker.line.color) };
    return { ...trace, x, y, marker: { ...trace.marker, line } };
  }
  const textfont = { ...trace.textfont, color: some(trace.textfont.color ?? []) };
  return { ...trace, x, y, text: some(trace.text), textfont };
}

/**
 * Plotly makes thin bars a pixel wide; here every bar gets the extent that it has.
 * @param {Plotted} place
 */
function exact(place) {
  const { xaxis, yaxis } = place._fullLayout;
  /** @param {number} value */
  const x = (value) => ((value - xaxis.range[0]) / (xaxis.range[1] - xaxis.range[0])) * xaxis._length;
  /** @param {number} value */
  const y = (value) => ((value - yaxis.range[1]) / (yaxis.range[0] - yaxis.range[1])) * yaxis._length;
  /** @type {NodeListOf<BoundElement>} */
  const groups = place.querySelectorAll(".barlayer .trace.bars");
  groups.forEach((group) => {
    const trace = place.data[group.__data__?.[0]?.trace?.index ?? -1];
    if (!trace) return;
    /** @type {NodeListOf<BoundElement>} */
    const points = group.querySelectorAll("g.point");
    for (const point of points) {
      const at = point.__data__?.i ?? -1;
      const high = (Array.isArray(trace.width) ? trace.width[at] : trace.width) / 2;
      const [left, right] = [x(trace.base[at]), x(trace.base[at] + trace.x[at])];
      const [top, bottom] = [y(trace.y[at] - high), y(trace.y[at] + high)];
      point.querySelector("path")?.setAttribute("d", `M${left},${top}V${bottom}H${right}V${top}Z`);
    }
  });
}

/** The whole recording in small: how busy it was, and which part is in view. Drag to move there. */
class Overview {
  #whole;
  #window;
  /** @type {Window} */
  view;

  /** @param {number[]} busy @param {Window} whole @param {(window: Window) => void} go */
  constructor(busy, whole, go) {
    this.#whole = whole;
    this.view = whole;
    const outline = busy
      .map((part, at) => `L${at},${(1 - part).toFixed(3)}L${at + 1},${(1 - part).toFixed(3)}`)
      .join("");
    const path = svg("path", { d: `M0,1${outline}L${busy.length},1Z`, class: "mtprof-busy" });
    this.#window = svg("rect", { y: 0, height: 1, class: "mtprof-window" });
    this.element = svg(
      "svg",
      {
        class: "mtprof-overview",
        viewBox: `0 0 ${busy.length} 1`,
        preserveAspectRatio: "none",
        role: "img",
        "aria-label": "How busy the recording was, and the part in view",
      },
      path,
      this.#window,
    );
    this.bins = busy.length;
    /** @param {PointerEvent} event */
    const move = (event) => {
      const box = this.element.getBoundingClientRect();
      const at = ((event.clientX - box.left) / box.width) * whole[1];
      const length = this.view[1] - this.view[0];
      if (length < whole[1]) go([at - length / 2, at + length / 2]);
    };
    this.element.addEventListener("pointerdown", (event) => {
      this.element.setPointerCapture(event.pointerId);
      move(event);
    });
    this.element.addEventListener("pointermove", (event) => event.buttons && move(event));
  }

  /** @param {Window} view */
  show(view) {
    this.view = view;
    const scale = this.bins / this.#whole[1];
    this.#window.classList.toggle("mtprof-whole", view[1] - view[0] >= this.#whole[1] * 0.999);
    this.#window.setAttribute("x", String(view[0] * scale));
    this.#window.setAttribute("width", String(Math.max((view[1] - view[0]) * scale, 1)));
  }
}
