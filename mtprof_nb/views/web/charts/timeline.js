// The timeline tab: zoom and pan; Python sends the level of detail that each window needs.

import { button, h, latest, legend, settled, svg, word } from "../dom.js";
import { duration, number } from "../format.js";
import { Chart, timeAxis } from "./chart.js";
import { Overview } from "./overview.js";
import { dimmed, trueWidths, withoutNames } from "./timeline_data.js";

/**
 * @import { TimelineFirst, TimelineWindow } from "../types/messages"
 * @import { PlaneLayout } from "../types/pictures"
 * @import { Plotted, TabContext, TabView } from "../types/surroundings"
 * @import { Window } from "./chart.js"
 */

const SHORTEST_S = 50e-9;
const TALLEST_ROW = 30;
const HELP =
  "Drag to zoom, double-click for all, Ctrl + wheel zooms, Shift + wheel pans; keys: arrows, + and -, 0 for all";

/** @param {TabContext<TimelineFirst>} context @returns {TabView} */
export const mount = (context) => new TimelineView(context);

class TimelineView {
  #first;
  #wire;
  #store;
  /** @type {Window} */
  #whole;
  /** @type {Window} */
  #view;
  /** @type {TimelineWindow} the last picture from Python */
  #picture;
  #plot = h("div", { class: "mtprof-plot" });
  #scroll = h(
    "div",
    { class: "mtprof-stage mtprof-scroll", role: "group", tabindex: "0", "aria-label": `Timeline. ${HELP}` },
    this.#plot,
  );
  #status = h("span", { class: "mtprof-count", role: "status" });
  #drag = toolButton("Pan", "Drag moves the window instead of zooming", () => this.#toggleDrag());
  #dragmode = "zoom";
  #overview;
  #chart;
  /** Pixels of the plot, and rows that it has room for. */
  #height = 0;
  #rows = 0;
  #askLatest = latest(() => this.#askWindow());
  #askSoon = settled(() => this.#ask(), 60);
  #observer = new ResizeObserver(settled(() => this.#plot.clientWidth && this.#refill(), 200));

  /** @param {TabContext<TimelineFirst>} context */
  constructor({ host, first, wire, store }) {
    this.#first = first;
    this.#wire = wire;
    this.#store = store;
    this.#picture = first;
    this.#whole = [0, first.whole_s];
    this.#view = this.#whole;
    this.#overview = new Overview(first.busy, this.#whole, (window) => this.#go(window));
    this.#chart = new Chart(this.#plot, wire, () => ({ data: this.#data(), layout: this.#layout() }));
    host.append(this.#tools(), this.#scroll, legend(first.legend));
    this.#listen();
    this.#refill();
    this.#observer.observe(this.#scroll);
  }

  #tools() {
    const tools = [
      toolButton("+", "Zoom in", () => this.#zoom(0.5)),
      toolButton("−", "Zoom out", () => this.#zoom(2)),
      toolButton("All", "Show the whole recording", () => this.#go(this.#whole)),
      this.#drag,
    ];
    this.#drag.setAttribute("aria-pressed", "false");
    return h("div", { class: "mtprof-tools" }, ...tools, this.#overview.element, this.#status);
  }

  #listen() {
    this.#chart.onzoom((window) => this.#go(window ?? this.#whole));
    this.#chart.on("plotly_click", ({ points }) => {
      const [event, name] = points[0].customdata ?? [];
      if (event !== undefined && name !== undefined) this.#store.pick(event, name);
    });
    this.#chart.on("plotly_afterplot", () => this.#finishPlot());
    this.#scroll.addEventListener("wheel", (event) => this.#wheel(event), { passive: false });
    this.#scroll.addEventListener("keydown", (event) => this.#key(event));
    this.#wire.onchange(() => (this.#drag.disabled = this.#wire.isSketched));
  }

  restyle() {
    this.#chart.draw();
  }

  renew() {
    if (this.#wire.live) this.#ask();
    else this.#draw();
  }

  destroy() {
    this.#observer.disconnect();
    this.#chart.destroy();
  }

  #toggleDrag() {
    this.#dragmode = this.#dragmode === "zoom" ? "pan" : "zoom";
    this.#drag.setAttribute("aria-pressed", String(this.#dragmode === "pan"));
    this.#draw();
  }

  /** Fits the plot into the tab and draws it: a few rows are drawn taller, many rows scroll. */
  #refill() {
    const { margin, height: least, yaxis } = this.#first.picture.layout;
    this.#height = Math.max(least, this.#scroll.clientHeight - 2);
    const room = this.#height - margin.t - margin.b;
    this.#rows = room / Math.min(room / yaxis.range[0], TALLEST_ROW);
    this.#plot.style.height = `${this.#height}px`;
    this.#draw();
    this.#ask();
  }

  /** @param {Window} window */
  #go([begin, end]) {
    const whole = this.#whole[1];
    const length = Math.min(Math.max(end - begin, SHORTEST_S), whole);
    const from = Math.min(Math.max(begin, 0), whole - length);
    this.#view = [from, from + length];
    this.#draw();
    this.#askSoon();
  }

  /** @param {number} factor @param {number} part of the window, from its begin, that stays in place */
  #zoom(factor, part = 0.5) {
    const [begin, end] = this.#view;
    const at = begin + part * (end - begin);
    this.#go([at - (at - begin) * factor, at + (end - at) * factor]);
  }

  /** @param {number} part of the window's length */
  #pan(part) {
    const [begin, end] = this.#view;
    this.#go([begin + (end - begin) * part, end + (end - begin) * part]);
  }

  async #ask() {
    const answer = await this.#askLatest();
    if (!answer) return;
    this.#picture = answer;
    this.#draw();
  }

  #askWindow() {
    const [begin_ns, end_ns] = this.#view.map((second) => Math.round(second * 1e9));
    const [pixels, selected] = [Math.round(this.#room), this.#store.selected];
    return this.#wire.ask({ tab: "timeline", ask: "window", begin_ns, end_ns, pixels, selected });
  }

  /** Pixels that the window is wide. */
  get #room() {
    const { l, r } = this.#first.picture.layout.margin;
    return Math.max(this.#plot.clientWidth - l - r, 100);
  }

  #draw() {
    const [begin, end] = this.#view;
    const [from, to] = this.#picture.drawn_s;
    // Until the answer comes, a window that reaches beyond the last picture is drawn from the picture of the whole.
    if (begin < from || end > to) this.#picture = this.#first;
    this.#overview.show(this.#view);
    this.#report();
    this.#chart.draw();
  }

  #report() {
    const length_ns = (this.#view[1] - this.#view[0]) * 1e9;
    const { drawn, held } = this.#picture;
    const blocks = word(`, ${number(drawn)} blocks`);
    this.#status.replaceChildren(word(`${duration(length_ns)}: `), `${number(held)} events`, blocks);
    this.#status.title = this.#status.textContent;
  }

  #data() {
    const { picture, pixels_per_s } = this.#picture;
    const selected = this.#store.selection?.name ?? -1;
    const data = this.#wire.live ? picture.data : dimmed(picture.data, selected, this.#first.dimmed);
    const scale = this.#room / (this.#view[1] - this.#view[0]);
    return scale > 0.9 * pixels_per_s ? data : withoutNames(data);
  }

  /** @returns {PlaneLayout} */
  #layout() {
    const { layout } = this.#picture.picture;
    return {
      ...layout,
      dragmode: this.#dragmode,
      height: this.#height,
      yaxis: { ...layout.yaxis, range: [this.#rows, 0] },
      xaxis: timeAxis(layout.xaxis, this.#view, this.#room / 90),
    };
  }

  #finishPlot() {
    trueWidths(/** @type {Plotted} */ (this.#plot));
    // Lane titles are cut to fit; the whole name shows on hover.
    /** @type {NodeListOf<SVGTextElement>} */
    const titles = this.#plot.querySelectorAll(".yaxislayer-above .ytick text");
    titles.forEach((tick, at) => {
      tick.style.pointerEvents = "all";
      tick.append(svg("title", { text: this.#first.lanes[at] ?? "" }));
    });
  }

  /** @param {WheelEvent} event */
  #wheel(event) {
    if (!event.ctrlKey && !event.metaKey && !event.altKey && !event.shiftKey) return;
    event.preventDefault();
    const steps = Math.sign(event.deltaY || event.deltaX);
    if (event.shiftKey) return this.#pan(0.15 * steps);
    const { l, r } = this.#first.picture.layout.margin;
    const box = this.#plot.getBoundingClientRect();
    const part = Math.min(Math.max((event.clientX - box.left - l) / (box.width - l - r), 0), 1);
    this.#zoom(steps > 0 ? 1.4 : 1 / 1.4, part);
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    /** @type {Record<string, () => void>} */
    const acts = {
      ArrowLeft: () => this.#pan(-0.2),
      ArrowRight: () => this.#pan(0.2),
      "+": () => this.#zoom(0.5),
      "=": () => this.#zoom(0.5),
      "-": () => this.#zoom(2),
      0: () => this.#go(this.#whole),
      Escape: () => this.#store.select(null),
    };
    if (!(event.key in acts) || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    event.stopPropagation();
    acts[event.key]();
  }
}

/** @param {string} text @param {string} label @param {() => void} onclick */
const toolButton = (text, label, onclick) => button({ "aria-label": label, title: label, text, onclick });
