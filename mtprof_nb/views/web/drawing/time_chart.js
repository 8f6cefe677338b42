// A chart over time: layers between margins, an axis below, and zoom, pan, tooltip and click.

import { h } from "../dom.js";
import { timeTicks } from "../format.js";
import { colours } from "../theme.js";
import { CanvasChart } from "./canvas_chart.js";
import { listen } from "./gestures.js";
import { Plane, shapeAt } from "./plane.js";
import { moved, within, zoomed } from "./time_window.js";

/**
 * @import { Picked } from "../store.js"
 * @import { Margin, Shape } from "./plane.js"
 * @import { TimeWindow } from "./time_window.js"
 * @typedef {(plane: Plane) => void} Layer
 * @typedef {object} TimeChartOptions
 * @property {string} label
 * @property {number} whole the length of the recording, in nanoseconds
 * @property {Margin} margin
 * @property {Layer[]} layers drawn one above the other, between the margins
 * @property {Layer[]} [frames] drawn above the layers, margins included
 * @property {() => number} [height] of all that is drawn with the margins, where it may be higher than its place
 * @property {(plane: Plane, x: number, y: number) => Shape | null} [probe] what is at a point; else the shape there
 * @property {() => void} onwindow called after another window came into view
 * @property {(picked: Picked) => void} onpick called after a click on a shape that picks something
 * @property {Record<string, () => void>} [keys] further keys and what they do
 */

const TICK_PIXELS = 90;

export class TimeChart extends CanvasChart {
  #options;
  /** @type {Plane | null} what was drawn last */
  #plane = null;
  /** @type {TimeWindow | null} the window that the present drag would zoom to */
  #box = null;
  /** @type {Shape | null} */
  #pointed = null;
  /** @type {PointerEvent | null} */
  #pointer = null;
  #rest;
  /** @type {"zoom" | "pan"} what a drag does */
  dragmode = "zoom";

  /** @param {HTMLElement} holder a positioned element around the chart, which tooltips stay within */
  constructor(holder, /** @type {TimeChartOptions} */ options) {
    const rest = h("div");
    const shown = { class: "mtprof-stage mtprof-scroll", role: "group", tabindex: "0", "aria-label": options.label };
    super(holder, h("div", shown, rest));
    this.#rest = rest;
    this.#options = options;
    /** @type {TimeWindow} */
    this.whole = [0, options.whole];
    this.window = this.whole;
    listen(this, options.keys ?? {});
    this.element.addEventListener("scroll", () => this.draw());
  }

  /** Pixels that the window is wide. */
  get room() {
    const { left, right } = this.#options.margin;
    return Math.max(this.element.clientWidth - left - right, 100);
  }

  /** @param {TimeWindow} window */
  go(window) {
    this.window = within(window, this.whole[1]);
    this.#options.onwindow();
    this.draw();
  }

  /** @param {number} factor by which the window becomes longer @param {number} [part] of it that stays in place */
  zoom(factor, part) {
    this.go(zoomed(this.window, factor, part));
  }

  /** @param {number} part of the window's length */
  pan(part) {
    this.go(moved(this.window, part));
  }

  /** The moment under a pixel of the screen. @param {number} clientX */
  momentAt(clientX) {
    const [begin, end] = this.window;
    const x = clientX - this.element.getBoundingClientRect().left - this.#options.margin.left;
    return begin + (x / this.room) * (end - begin);
  }

  /** Shows the window that a drag would zoom to. @param {TimeWindow | null} box */
  frame(box) {
    this.#box = box;
    this.draw();
  }

  /** Describes what the pointer is on. @param {PointerEvent | null} pointer */
  point(pointer) {
    this.#pointer = pointer;
    const before = this.#pointed;
    this.#pointed = this.#at(pointer);
    if (pointer && this.#pointed) this.tooltip.show(this.#pointed.describe(), pointer);
    else this.tooltip.hide();
    this.element.classList.toggle("mtprof-on-shape", this.#pointed?.picks !== undefined);
    if (before !== this.#pointed) this.draw();
  }

  /** @param {PointerEvent} pointer */
  click(pointer) {
    const picks = this.#at(pointer)?.picks;
    if (picks) this.#options.onpick(picks);
  }

  /** @param {PointerEvent | null} pointer */
  #at(pointer) {
    if (!pointer || !this.#plane) return null;
    const place = this.element.getBoundingClientRect();
    const [x, y] = [pointer.clientX - place.left, pointer.clientY - place.top];
    return this.#options.probe?.(this.#plane, x, y) ?? shapeAt(this.#plane.shapes, x, y);
  }

  /** @param {CanvasRenderingContext2D} context @param {number} width @param {number} height */
  paint(context, width, height) {
    const { margin, layers, frames = [], height: needed } = this.#options;
    this.#rest.style.height = `${Math.max((needed?.() ?? 0) - height, 0)}px`;
    const place = { width, height, margin, window: this.window, scroll: this.element.scrollTop };
    const plane = new Plane(context, place, colours(this.element));
    timeAxis(plane);
    plane.clipped(() => {
      for (const layer of layers) layer(plane);
    });
    for (const layer of frames) layer(plane);
    this.#plane = plane;
    this.#mark(plane);
    return plane.shapes;
  }

  /** Marks what the pointer is on, and the box that it draws. @param {Plane} plane */
  #mark(plane) {
    const { context, theme } = plane;
    this.#pointed &&= this.#at(this.#pointer);
    plane.clipped(() => {
      if (this.#pointed?.mark) this.#pointed.mark(plane);
      else if (this.#pointed) outline(plane, this.#pointed);
      if (!this.#box) return;
      const [left, right] = [plane.x(this.#box[0]), plane.x(this.#box[1])];
      context.fillStyle = theme.accent;
      context.globalAlpha = 0.18;
      context.fillRect(left, plane.top, right - left, plane.bottom - plane.top);
      context.globalAlpha = 1;
      for (const x of [left, right]) plane.line([x, plane.top], [x, plane.bottom], theme.accent);
    });
  }
}

/** @param {Plane} plane @param {Shape} shape */
function outline({ context, theme }, { x, y, width, height }) {
  context.strokeStyle = theme.text;
  context.lineWidth = 1.5;
  context.strokeRect(x, y, Math.max(width, 1), height);
}

/** Round moments below the plane, and a line through it at each. @param {Plane} plane */
function timeAxis(plane) {
  const { theme, window, top, bottom, left, right } = plane;
  const most = Math.max((right - left) / TICK_PIXELS, 2);
  const { values, text } = timeTicks(window[0] / 1e9, window[1] / 1e9, most);
  for (const [at, value] of values.entries()) {
    const x = plane.x(value * 1e9);
    plane.line([x, top], [x, bottom + 4], theme.grid);
    const align = x > plane.width - 26 ? "right" : x < left + 20 && left < 20 ? "left" : "center";
    plane.write(text[at], align === "right" ? plane.width - 2 : x, bottom + 13, theme.quiet, align);
  }
  plane.line([left, bottom], [right, bottom], theme.line);
}
