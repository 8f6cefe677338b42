// Measured times as dots, so that the noise can be seen: both sides over one another, run after run.

import { h } from "../../web/dom.js";
import { duration } from "../../web/format.js";
import { colours } from "../../web/theme.js";
import { CanvasChart } from "../../web/drawing/canvas_chart.js";
import { median } from "../../web/median.js";

/**
 * @import { Labels, Points } from "./comparison_types"
 * @typedef {{ x: number, y: number, width: number, height: number, label: string, describe: () => string[] }} Dot
 */

/** Colours of a and b. */
export const SIDES = ["#f2a02c", "#1f77d0"];
const LEFT = 64;
const EDGE = 10;
const RADIUS = 2.5;
/** How near the pointer has to be. */
const REACH = 8;
/** Dots above so many medians of their side are drawn at the upper edge. */
const WITHIN = 2.5;

/** The lowest and the highest time of the axis, without very long ones. @param {Points} points @returns {[number, number]} */
export function scaleOf({ a, b }) {
  const sides = [a.flat(), b.flat()].filter((times) => times.length);
  const high = sides.map((times) => Math.min(Math.max(...times), WITHIN * median(times)));
  const low = 0.97 * Math.min(...sides.flat());
  return [low, Math.max(1.03 * Math.max(...high), low + 1)];
}

/** Places of points from 0 to 1, in which each run takes an equal part. @param {number[][]} runs */
export function placesOf(runs) {
  return runs.flatMap((run, number) =>
    run.map((ns, at) => ({ ns, run: number, at, place: (number + (at + 0.5) / run.length) / runs.length })),
  );
}

export class Dots extends CanvasChart {
  #points;
  #labels;

  /** @param {HTMLElement} holder which tooltips stay within @param {Points} points @param {Labels} labels */
  constructor(holder, points, labels) {
    const spoken = labels.map((label, side) => `${label} ${duration(median([points.a, points.b][side].flat()))}`);
    const label = `Times, a dot for each ${points.unit}. Medians: ${spoken.join(", ")}`;
    super(holder, h("div", { class: "mtprof-dots", role: "img", "aria-label": label }));
    this.#points = points;
    this.#labels = labels;
    this.element.addEventListener("pointermove", (event) => this.#point(event));
    this.element.addEventListener("pointerleave", () => this.tooltip.hide());
  }

  /** @param {CanvasRenderingContext2D} context @param {number} width @param {number} height */
  paint(context, width, height) {
    const theme = colours(this.element);
    const [low, high] = scaleOf(this.#points);
    /** @param {number} ns */
    const y = (ns) => EDGE + (height - 2 * EDGE) * (1 - (Math.min(ns, high) - low) / (high - low));
    context.font = `11px ${theme.font}`;
    context.textBaseline = "middle";
    context.textAlign = "right";
    context.fillStyle = theme.quiet;
    for (const ns of [low, high]) context.fillText(duration(ns), LEFT - 8, y(ns));
    return [this.#points.a, this.#points.b].flatMap((runs, side) => this.#paintSide(context, runs, side, width, y));
  }

  /**
   * @param {CanvasRenderingContext2D} context
   * @param {number[][]} runs
   * @param {number} side
   * @param {number} width
   * @param {(ns: number) => number} y
   * @returns {Dot[]}
   */
  #paintSide(context, runs, side, width, y) {
    const label = this.#labels[side];
    context.fillStyle = SIDES[side];
    context.globalAlpha = 0.7;
    const dots = placesOf(runs).map(({ ns, run, at, place }) => {
      const [x, top] = [LEFT + (width - LEFT - EDGE) * place, y(ns)];
      context.beginPath();
      context.arc(x, top, RADIUS, 0, 2 * Math.PI);
      context.fill();
      const where = `${this.#points.unit} ${at}${runs.length > 1 ? ` of run ${run}` : ""}`;
      const box = { x: x - RADIUS, y: top - RADIUS, width: 2 * RADIUS, height: 2 * RADIUS };
      return { ...box, label, describe: () => [`${label}: ${duration(ns)}`, where] };
    });
    context.globalAlpha = 1;
    context.fillRect(LEFT, Math.round(y(median(runs.flat()))), width - LEFT - EDGE, 1.5);
    return dots;
  }

  /** Describes the nearest dot. @param {PointerEvent} pointer */
  #point(pointer) {
    const place = this.element.getBoundingClientRect();
    const [x, y] = [pointer.clientX - place.left, pointer.clientY - place.top];
    const near = this.canvas.shapes
      .map((dot) => ({ dot, apart: Math.hypot(dot.x + RADIUS - x, dot.y + RADIUS - y) }))
      .filter(({ apart }) => apart <= REACH)
      .sort((one, other) => one.apart - other.apart)[0];
    if (near) this.tooltip.show(near.dot.describe(), pointer);
    else this.tooltip.hide();
  }
}
