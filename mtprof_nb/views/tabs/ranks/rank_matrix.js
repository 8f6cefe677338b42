// Steps by ranks as a matrix of cells: a row a rank, a column a step, darker where a rank took longer than the others.

import { h } from "../../web/dom.js";
import { duration, number } from "../../web/format.js";
import { CanvasChart } from "../../web/drawing/canvas_chart.js";
import { median } from "../../web/median.js";
import { colours } from "../../web/theme.js";

/** @import { StepMatrix } from "./ranks_types" */

/** Room for the labels of ranks. */
const LEFT = 64;
/** Heights of a row: few ranks have thick rows, and many share the largest height. */
const [THICKEST, HIGHEST] = [18, 260];
/** A step this many times as long as its median is as dark as can be. */
const DARKEST = 2;
/** The least height of a row that has a label. */
const LABELLED = 9;

/** The median of the times that are known, 0 of none. @param {number[]} times */
export const medianOfKnown = (times) => median(times.filter((ns) => ns >= 0));

/** How dark a cell is, from 0 to 1. @param {number} ns @param {number} usual the median of its step */
export function darkness(ns, usual) {
  if (ns < 0 || !usual) return 0;
  return Math.min(Math.max((ns / usual - 1) / (DARKEST - 1), 0), 1);
}

export class RankMatrix extends CanvasChart {
  #steps;
  #labels;
  /** The median of each step over the ranks that recorded it. */
  #medians;

  /** @param {HTMLElement} holder which tooltips stay within @param {StepMatrix} steps @param {string[]} labels of ranks */
  constructor(holder, steps, labels) {
    const height = Math.min(labels.length * THICKEST, HIGHEST);
    super(holder, h("div", { class: "mtprof-rank-matrix", role: "img", style: `height:${height}px` }));
    this.#steps = steps;
    this.#labels = labels;
    this.#medians = steps.numbers.map((_, at) => medianOfKnown(steps.duration_ns.map((row) => row[at])));
    this.element.setAttribute("aria-label", this.#spoken());
    this.element.addEventListener("pointermove", (event) => this.#point(event));
    this.element.addEventListener("pointerleave", () => this.tooltip.hide());
  }

  /** The step that stands out most, in words. */
  #spoken() {
    let [worst, words] = [0, "no step differs"];
    for (const [rank, row] of this.#steps.duration_ns.entries())
      for (const [at, ns] of row.entries()) {
        const ratio = this.#medians[at] ? ns / this.#medians[at] : 0;
        if (ratio > worst) [worst, words] = [ratio, this.#description(rank, at).join(", ")];
      }
    return `Time of each step on each rank; most beyond the others: ${words}`;
  }

  /** @param {number} rank @param {number} at a column */
  #description(rank, at) {
    const { numbers, group, duration_ns } = this.#steps;
    const ns = duration_ns[rank][at];
    const last = numbers[at] + group - 1;
    const steps = group > 1 ? `steps ${number(numbers[at])} to ${number(last)}` : `step ${number(numbers[at])}`;
    if (ns < 0) return [`${this.#labels[rank]}, ${steps}`, "not recorded"];
    const usual = this.#medians[at];
    const ratio = usual ? `, ${(ns / usual).toFixed(2)} × the median` : "";
    return [`${this.#labels[rank]}, ${steps}`, `${duration(ns)}${ratio}`];
  }

  /** @param {CanvasRenderingContext2D} context @param {number} width @param {number} height */
  paint(context, width, height) {
    const { duration_ns, numbers } = this.#steps;
    const { accent, quiet, font } = colours(this.element);
    const [wide, high] = [(width - LEFT) / numbers.length, height / this.#labels.length];
    context.font = `11px ${font}`;
    context.textBaseline = "middle";
    const every = Math.ceil(LABELLED / high);
    for (const [rank, row] of duration_ns.entries()) {
      context.fillStyle = quiet;
      if (rank % every === 0) context.fillText(this.#labels[rank], 0, (rank + 0.5) * high, LEFT - 6);
      for (const [at, ns] of row.entries()) {
        if (ns < 0) continue;
        context.globalAlpha = 0.12 + 0.88 * darkness(ns, this.#medians[at]);
        context.fillStyle = accent;
        const gap = high > 4 && wide > 4 ? 1 : 0;
        context.fillRect(LEFT + at * wide, rank * high, Math.max(wide - gap, 0.5), Math.max(high - gap, 0.5));
      }
      context.globalAlpha = 1;
    }
    return [];
  }

  /** @param {PointerEvent} event */
  #point(event) {
    const { left, top, width, height } = this.element.getBoundingClientRect();
    const [x, y] = [event.clientX - left - LEFT, event.clientY - top];
    const at = Math.floor((x / (width - LEFT)) * this.#steps.numbers.length);
    const rank = Math.floor((y / height) * this.#labels.length);
    if (at < 0 || at >= this.#steps.numbers.length || rank < 0 || rank >= this.#labels.length) this.tooltip.hide();
    else this.tooltip.show(this.#description(rank, at), event);
  }
}
