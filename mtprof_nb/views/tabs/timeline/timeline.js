// The timeline tab: zoom and pan, at the level of detail that each window needs.

import { button, h, latest, legend, settled, word } from "../../web/dom.js";
import { rowOf } from "../../web/event_rows.js";
import { duration, number } from "../../web/format.js";
import { barsOf, COLLECTION, isFinest, paintBars, paintCollections, paintPhases, paintSteps } from "./blocks.js";
import { paintArrows, paintGaps } from "./device_marks.js";
import { LaneRows } from "../../web/drawing/lanes.js";
import { launchesOf } from "./launches.js";
import { Overview } from "./overview.js";
import { searched } from "../../web/search.js";
import { TimeChart } from "../../web/drawing/time_chart.js";
import { timelineWindow } from "./timeline_windows.js";

/**
 * @import { TimelineFirst, TimelineWindow } from "../../web/types/messages"
 * @import { Launches } from "./devices_types"
 * @import { TabContext, TabView } from "../../web/types/surroundings"
 * @import { Plane } from "../../web/drawing/plane.js"
 */

const MARGIN = { right: 12, top: 20, bottom: 24 };
/** Room for the titles of lanes. */
const [NARROWEST, WIDEST] = [92, 168];
const HELP =
  "Drag to zoom, double-click for all, Ctrl + wheel zooms, Shift + wheel or drag pans; keys: arrows, + and -, 0 for all";

/** @param {TabContext<TimelineFirst>} context @returns {TabView} */
export const mount = (context) => new TimelineView(context);

class TimelineView {
  #first;
  #wire;
  #store;
  /** @type {TimelineWindow} the last window */
  #drawn;
  #rows;
  #margin;
  /** The event whose launches are shown, -1 for none. */
  #picked = -1;
  /** @type {Launches | null} */
  #launches = null;
  #chart;
  #overview;
  #status = h("span", { class: "mtprof-count", role: "status" });
  #drag = toolButton("Pan", "Drag moves the window instead of zooming", () => this.#toggleDrag());
  #askLatest = latest(() => this.#askWindow());
  #launchesOf = latest(async (/** @type {number} */ event) => {
    const whole = await this.#whole();
    return whole ? launchesOf(event, whole.launches) : this.#wire.ask({ tab: "timeline", ask: "launches", event });
  });
  #askSoon = settled(() => this.#ask(), 60);
  #observer = new ResizeObserver(settled(() => this.#chart.element.clientWidth && this.#ask(), 200));

  /** @param {TabContext<TimelineFirst>} context */
  constructor({ host, first, wire, store }) {
    this.#first = first;
    this.#wire = wire;
    this.#store = store;
    this.#drawn = first;
    this.#rows = new LaneRows(first.lanes);
    this.#margin = { ...MARGIN, left: Math.min(Math.max(this.#rows.widest(host), NARROWEST), WIDEST) };
    this.#chart = this.#makeChart(host);
    this.#overview = new Overview(first.busy, first.whole_ns, (window) => this.#chart.go(window));
    const families = first.legend.map((code) => first.families[code]);
    const marks = first.collections.lane.length ? [COLLECTION] : [];
    host.append(this.#tools(), this.#chart.element, legend([...families, ...first.causes, ...marks]));
    this.#report();
    this.#observer.observe(this.#chart.element);
    store.on("seek", () => this.#chart.draw());
  }

  /** @param {HTMLElement} host */
  #makeChart(host) {
    return new TimeChart(host, {
      label: `Timeline. ${HELP}`,
      whole: this.#first.whole_ns,
      margin: this.#margin,
      layers: [(plane) => this.#paint(plane), (plane) => this.#paintLaunches(plane)],
      frames: [(plane) => this.#rows.paintTitles(plane), (plane) => paintSteps(plane, this.#drawn)],
      height: () => this.#rows.height + MARGIN.top + MARGIN.bottom,
      onwindow: () => this.#follow(),
      onpick: (picked) => {
        this.#show(picked.event);
        this.#store.emit("pick", picked);
      },
      keys: {
        Escape: () => {
          this.#show(-1);
          this.#store.select(null);
        },
      },
    });
  }

  #tools() {
    const tools = [
      toolButton("+", "Zoom in", () => this.#chart.zoom(0.5)),
      toolButton("−", "Zoom out", () => this.#chart.zoom(2)),
      toolButton("All", "Show the whole recording", () => this.#chart.go(this.#chart.whole)),
      this.#drag,
    ];
    this.#drag.setAttribute("aria-pressed", "false");
    return h("div", { class: "mtprof-tools" }, ...tools, this.#overview.element, this.#status);
  }

  restyle() {
    this.#chart.draw();
  }

  print() {
    this.#chart.print();
  }

  renew() {
    if (this.#picked !== this.#store.picked) this.#show(this.#store.picked);
    if (this.#wire.silent) this.#drawn = { ...this.#drawn, blocks: { ...this.#drawn.blocks, lit: null } };
    this.#chart.draw();
    this.#ask();
  }

  destroy() {
    this.#observer.disconnect();
    this.#chart.destroy();
  }

  /** Shows the launches of an event, and to which kernels they led; -1 shows none. @param {number} event */
  async #show(event) {
    this.#picked = event;
    this.#launches = null;
    this.#chart.draw();
    if (event < 0 || !this.#first.causes.length) return;
    const launches = await this.#launchesOf(event);
    if (!launches || this.#picked !== event) return;
    this.#launches = launches;
    this.#report();
    this.#chart.draw();
  }

  /** @param {Plane} plane */
  #paintLaunches(plane) {
    if (this.#launches) paintArrows(plane, this.#rows, this.#launches);
  }

  #toggleDrag() {
    this.#chart.dragmode = this.#chart.dragmode === "zoom" ? "pan" : "zoom";
    this.#drag.setAttribute("aria-pressed", String(this.#chart.dragmode === "pan"));
  }

  /** Another window is in view: it is drawn from what is here until its detail has come. */
  #follow() {
    const [begin, end] = this.#chart.window;
    const [from, to] = this.#drawn.drawn_ns;
    if (begin < from || end > to) this.#drawn = this.#first;
    this.#overview.show(this.#chart.window);
    this.#report();
    this.#askSoon();
  }

  async #ask() {
    const answer = await this.#askLatest();
    if (!answer) return;
    this.#drawn = answer;
    this.#report();
    this.#chart.draw();
  }

  /** The recording from which windows are made here; null where it is too long, or Python is not there. */
  #whole() {
    return this.#wire.once({ tab: "timeline", ask: "whole" });
  }

  async #askWindow() {
    const [begin_ns, end_ns] = this.#chart.window.map(Math.round);
    const wanted = { begin_ns, end_ns, pixels: Math.round(this.#chart.room) };
    const { selected, chosen } = this.#store;
    const whole = await this.#whole();
    if (!whole) return this.#wire.ask({ tab: "timeline", ask: "window", selected, ...wanted });
    if (!selected) return timelineWindow(whole, wanted, null);
    const rows = await this.#wire.once({ tab: "operators", ask: "events", grouping: selected.grouping });
    return rows && timelineWindow(whole, wanted, (event) => chosen.has(rowOf(rows, event)));
  }

  #report() {
    const [begin, end] = this.#chart.window;
    const { count, start_ns, length_ns } = this.#drawn.blocks;
    const visible = count.filter((_, at) => start_ns[at] <= end && start_ns[at] + length_ns[at] >= begin);
    const held = visible.reduce((sum, events) => sum + events, 0);
    const drawn = word(`, ${number(visible.length)} blocks`);
    const limit = isFinest(this.#drawn) ? "; no finer detail in this page" : "";
    const launched = this.#launches ? `${number(this.#launches.total)} on the device, ` : "";
    this.#status.replaceChildren(word(`${duration(end - begin)}: `), launched, `${number(held)} events`, drawn, limit);
    this.#status.title = this.#status.textContent;
  }

  /** @param {Plane} plane */
  #paint(plane) {
    this.#rows.fit(plane.bottom - plane.top);
    this.#rows.paintLines(plane);
    paintCollections(plane, this.#rows, this.#first.collections);
    paintPhases(plane, this.#rows, this.#drawn);
    paintGaps(plane, this.#rows, this.#drawn, this.#first.causes);
    const { holds } = searched(this.#store.search);
    const isFound = (/** @type {number} */ bar) => holds(this.#drawn.texts.names[this.#drawn.bars.name[bar]] ?? "");
    const isLit = (/** @type {number} */ bar) => isFound(bar) && this.#isLit(bar);
    const bars = barsOf(plane, this.#rows, this.#drawn, this.#first, isLit);
    paintBars(plane, bars);
    plane.shapes.push(...bars);
  }

  /**
   * Whether a bar has selected events. Until Python has answered, and without it, those are looked for by name, and only the
   * longest event of a bar is known.
   * @param {number} bar
   */
  #isLit(bar) {
    const { blocks, bars } = this.#drawn;
    const { selection } = this.#store;
    if (!selection) return true;
    if (blocks.lit) return blocks.lit[bars.block[bar]];
    return selection.name < 0 || bars.name[bar] === selection.name;
  }
}

/** @param {string} text @param {string} label @param {() => void} onclick */
const toolButton = (text, label, onclick) => button({ "aria-label": label, title: label, text, onclick });
