// The tab of two timelines: one step of each side, one above the other, under axes that begin with the step.

import { button, choiceBy, h, latest, legend, settled } from "../../web/dom.js";
import { duration } from "../../web/format.js";
import { barsOf, paintBars, paintPhases } from "../timeline/blocks.js";
import { LaneRows } from "../../web/drawing/lanes.js";
import { TimeChart } from "../../web/drawing/time_chart.js";
import { SIDES } from "../differences/dots.js";
import { stepWindows } from "./step_windows.js";

/**
 * @import { TwoTimelinesFirst } from "../differences/comparison_types"
 * @import { TimelineWindow } from "../../web/types/messages"
 * @import { TabContext, TabView } from "../../web/types/surroundings"
 * @import { Plane } from "../../web/drawing/plane.js"
 */

const MARGIN = { right: 12, top: 6, bottom: 22 };
/** Room for the titles of lanes. */
const [NARROWEST, WIDEST] = [92, 168];

/** @param {TabContext<TwoTimelinesFirst>} context @returns {TabView} */
export const mount = (context) => new TwoTimelinesView(context);

class TwoTimelinesView {
  #first;
  #wire;
  /** @type {TimelineWindow[]} the last windows */
  #drawn;
  #step = 0;
  #rows;
  #charts;
  #status = h("span", { class: "mtprof-count", role: "status" });
  #choice;
  #askLatest = latest(() => this.#askWindows());
  #askSoon = settled(() => this.#ask(), 60);
  #observer = new ResizeObserver(settled(() => this.#charts[0].element.clientWidth && this.#ask(), 200));

  /** @param {TabContext<TwoTimelinesFirst>} context */
  constructor({ host, first, wire }) {
    this.#first = first;
    this.#wire = wire;
    this.#drawn = first.windows;
    this.#rows = first.lanes.map((lanes) => new LaneRows(lanes));
    const widest = Math.max(...this.#rows.map((rows) => rows.widest(host)));
    const left = Math.min(Math.max(widest, NARROWEST), WIDEST);
    this.#charts = first.labels.map((label, side) => this.#chart(host, label, side, left));
    const steps = first.steps.map(({ title }, at) => ({ key: String(at), title }));
    this.#choice = choiceBy("Step", steps, (key) => this.#go(Number(key)));
    const stages = this.#charts.map((chart, side) =>
      h("div", { class: "mtprof-one-timeline" }, h("b", { text: first.labels[side] }), chart.element),
    );
    const families = first.legend.map((code) => first.families[code]);
    host.append(this.#tools(), ...stages, legend(families));
    wire.onchange(() => (this.#choice.select.disabled = wire.silent));
    this.#report();
    this.#observer.observe(this.#charts[0].element);
  }

  restyle() {
    for (const chart of this.#charts) chart.draw();
  }

  print() {
    for (const chart of this.#charts) chart.print();
  }

  destroy() {
    this.#observer.disconnect();
    for (const chart of this.#charts) chart.destroy();
  }

  /** @param {HTMLElement} host @param {string} label @param {number} side @param {number} left */
  #chart(host, label, side, left) {
    return new TimeChart(host, {
      label: `Timeline of ${label}. Drag to zoom both, double-click for the whole step`,
      whole: this.#whole[1],
      margin: { ...MARGIN, left },
      layers: [(plane) => this.#paint(plane, side)],
      frames: [(plane) => this.#rows[side].paintTitles(plane), (plane) => this.#paintEnd(plane, side)],
      height: () => this.#rows[side].height + MARGIN.top + MARGIN.bottom,
      onwindow: () => this.#follow(side),
      onpick: () => {},
    });
  }

  #tools() {
    const whole = button({ text: "All", title: "Show the whole step", onclick: () => this.#show(this.#whole) });
    return h("div", { class: "mtprof-tools" }, this.#choice.select, whole, this.#status);
  }

  /** @returns {[number, number]} */
  get #whole() {
    return [0, Math.max(...this.#first.steps[this.#step].length_ns, 1)];
  }

  /** Shows a window in both charts. @param {[number, number]} window */
  #show(window) {
    this.#charts[0].go(window);
  }

  /** @param {number} step */
  #go(step) {
    this.#step = step;
    for (const chart of this.#charts) chart.whole = this.#whole;
    this.#show(this.#whole);
  }

  /** The window of one chart has changed: the other one follows. @param {number} side */
  #follow(side) {
    const [own, other] = [this.#charts[side], this.#charts[1 - side]];
    other.window = own.window;
    other.draw();
    this.#report();
    this.#askSoon();
  }

  async #ask() {
    const answer = await this.#askLatest();
    if (!answer) return;
    this.#drawn = answer.windows;
    this.restyle();
  }

  async #askWindows() {
    const [begin_ns, end_ns] = this.#charts[0].window.map(Math.round);
    const wanted = { step: this.#step, begin_ns, end_ns, pixels: Math.round(this.#charts[0].room) };
    const whole = await this.#wire.once({ tab: "two_timelines", ask: "whole" });
    return whole ? stepWindows(whole, wanted) : this.#wire.ask({ tab: "two_timelines", ask: "window", ...wanted });
  }

  #report() {
    const [begin, end] = this.#charts[0].window;
    this.#status.textContent = `${duration(end - begin)} of both`;
  }

  /** A line where the step of this side ends. @param {Plane} plane @param {number} side */
  #paintEnd(plane, side) {
    const length = this.#first.steps[this.#step].length_ns[side];
    const x = plane.x(length);
    if (x < plane.left || x > plane.right) return;
    plane.line([x, plane.top], [x, plane.bottom], SIDES[side]);
    const isLeft = x > (plane.left + plane.right) / 2;
    const y = plane.bottom - 8;
    plane.write(`ends at ${duration(length)}`, x + (isLeft ? -6 : 6), y, plane.theme.quiet, isLeft ? "right" : "left");
  }

  /** @param {Plane} plane @param {number} side */
  #paint(plane, side) {
    const [rows, drawn] = [this.#rows[side], this.#drawn[side]];
    rows.fit(plane.bottom - plane.top);
    rows.paintLines(plane);
    paintPhases(plane, rows, drawn);
    const bars = barsOf(plane, rows, drawn, { families: this.#first.families, has_steps: false }, () => true);
    paintBars(plane, bars);
    // A click selects nothing here: the tables are of one side.
    plane.shapes.push(...bars.map((bar) => ({ ...bar, picks: undefined })));
  }
}
