// Memory by purpose: the bytes of each purpose over time, one above the other.

import { button, h, legend } from "../../web/dom.js";
import { duration, nbytes } from "../../web/format.js";
import { byteTicks, lastBefore } from "./curve.js";
import { TimeChart } from "../../web/drawing/time_chart.js";

/**
 * @import { Purpose, PurposesFirst } from "./memory_types"
 * @import { TabContext, TabView } from "../../web/types/surroundings"
 * @import { Plane, Shape } from "../../web/drawing/plane.js"
 */

const MARGIN = { left: 72, right: 14, top: 8, bottom: 24 };
/** Room above the peak. */
const ABOVE = 1.05;
const HELP = "Drag to zoom, double-click or key 0 for all";

/** For each purpose, the bytes of it and of those below it. @param {Purpose[]} purposes */
export function stacked(purposes) {
  /** @type {number[]} */
  let below = [];
  return purposes.map(({ nbytes: held }) => {
    below = held.map((count, at) => count + (below[at] ?? 0));
    return below;
  });
}

/** @param {TabContext<PurposesFirst>} context @returns {TabView} */
export const mount = (context) => new PurposesView(context);

class PurposesView {
  #first;
  #tops;
  #chart;

  /** @param {TabContext<PurposesFirst>} context */
  constructor({ host, first }) {
    this.#first = first;
    this.#tops = stacked(first.purposes);
    this.#chart = new TimeChart(host, {
      label: `Allocated bytes by purpose over time. ${HELP}`,
      whole: first.whole_ns,
      margin: MARGIN,
      layers: [(plane) => this.#paint(plane)],
      frames: [(plane) => this.#paintAxis(plane)],
      probe: (plane, x, y) => this.#held(plane, x, y),
      onwindow: () => {},
      onpick: () => {},
    });
    const all = button({
      text: "All",
      title: "Show the whole recording",
      onclick: () => this.#chart.go(this.#chart.whole),
    });
    const note = h("span", { class: "mtprof-count", text: first.note || HELP, title: HELP });
    host.append(
      h("div", { class: "mtprof-tools" }, all, legend(first.purposes, "Colours of purposes"), note),
      this.#chart.element,
    );
  }

  restyle() {
    this.#chart.draw();
  }

  print() {
    this.#chart.print();
  }

  destroy() {
    this.#chart.destroy();
  }

  /** Pixels of bytes. @param {Plane} plane @param {number} count */
  #y(plane, count) {
    return plane.bottom - (count / (this.#first.peak * ABOVE)) * (plane.bottom - plane.top);
  }

  /** Each purpose down to the bottom, the uppermost first: those below it cover the rest. @param {Plane} plane */
  #paint(plane) {
    for (const count of byteTicks(this.#first.peak)) {
      const y = this.#y(plane, count);
      plane.line([plane.left, y], [plane.right, y], plane.theme.grid);
    }
    for (let at = this.#tops.length - 1; at >= 0; at--) {
      plane.context.fillStyle = this.#first.purposes[at].colour;
      plane.context.fill(this.#outline(plane, this.#tops[at]));
    }
  }

  /** @param {Plane} plane @param {number[]} tops */
  #outline(plane, tops) {
    const { time_ns } = this.#first;
    const path = new Path2D();
    path.moveTo(plane.x(time_ns[0]), plane.bottom);
    for (const [at, ns] of time_ns.entries()) {
      path.lineTo(plane.x(ns), this.#y(plane, tops[at - 1] ?? 0));
      path.lineTo(plane.x(ns), this.#y(plane, tops[at]));
    }
    // The last bytes are held until the end.
    const end = plane.x(Math.max(plane.window[1], time_ns[time_ns.length - 1]));
    path.lineTo(end, this.#y(plane, tops[tops.length - 1]));
    path.lineTo(end, plane.bottom);
    return path;
  }

  /** @param {Plane} plane */
  #paintAxis(plane) {
    for (const count of byteTicks(this.#first.peak))
      plane.write(nbytes(count), plane.left - 8, this.#y(plane, count), plane.theme.quiet, "right");
  }

  /** Names the bytes held at a moment. @param {Plane} plane @param {number} x @param {number} y @returns {Shape | null} */
  #held(plane, x, y) {
    const { time_ns, purposes } = this.#first;
    const at = lastBefore(time_ns, plane.ns(x));
    if (x < plane.left || x > plane.right || !plane.shows(y, 0) || at < 0) return null;
    const held = purposes.filter(({ nbytes: bytes }) => bytes[at]).reverse();
    const total = this.#tops[this.#tops.length - 1][at];
    const mark = () => plane.line([x, plane.top], [x, plane.bottom], plane.theme.quiet, [2, 2]);
    const tell = () => [
      `${nbytes(total)}, at ${duration(plane.ns(x))}`,
      ...held.map(({ title, nbytes: bytes }) => `${title} ${nbytes(bytes[at])}`),
    ];
    return { x, y, width: 0, height: 0, mark, tell };
  }
}
