// The plane that layers of a chart draw on: time from left to right, pixels from the top.

/**
 * @import { Colours } from "../theme.js"
 * @import { Picked } from "../store.js"
 * @import { TimeWindow } from "./time_window.js"
 * @typedef {Record<"left" | "right" | "top" | "bottom", number>} Margin in pixels
 * @typedef {object} Shape something on the plane that the pointer can be on
 * @property {number} x
 * @property {number} y
 * @property {number} width
 * @property {number} height
 * @property {() => string[]} describe the lines of its tooltip, the first one bold
 * @property {string} [label] its whole name
 * @property {Picked} [picks] what a click on it selects
 * @property {(plane: Plane) => void} [mark] marks it while the pointer is on it; else it is outlined
 */

/** A narrower shape can also be pointed at from a few pixels away. */
const REACH = 2;

export class Plane {
  /** @type {Shape[]} what was drawn so far; a later shape lies above an earlier one */
  shapes = [];

  /**
   * @param {CanvasRenderingContext2D} context
   * @param {{ width: number, height: number, margin: Margin, window: TimeWindow, scroll: number }} place
   * @param {Colours} theme
   */
  constructor(context, { width, height, margin, window, scroll }, theme) {
    this.context = context;
    this.theme = theme;
    this.window = window;
    this.width = width;
    this.height = height;
    this.left = margin.left;
    this.right = Math.max(width - margin.right, margin.left + 1);
    this.top = margin.top;
    this.bottom = Math.max(height - margin.bottom, margin.top + 1);
    /** Pixels by which what is drawn is scrolled upwards. */
    this.scroll = scroll;
    this.font = `11px ${theme.font}`;
  }

  /** Pixels of a nanosecond. */
  get scale() {
    return (this.right - this.left) / (this.window[1] - this.window[0]);
  }

  /** The pixel of a moment. @param {number} ns */
  x(ns) {
    return this.left + (ns - this.window[0]) * this.scale;
  }

  /** The moment of a pixel. @param {number} x */
  ns(x) {
    return this.window[0] + (x - this.left) / this.scale;
  }

  /** Whether any part from `y` to `y + height` is in view. @param {number} y @param {number} height */
  shows(y, height) {
    return y < this.bottom && y + height > this.top;
  }

  /**
   * Writes a text; `align` is the part of it that is at `x`.
   * @param {string} text
   * @param {number} x
   * @param {number} y of its middle
   * @param {string} colour
   * @param {CanvasTextAlign} align
   */
  write(text, x, y, colour, align = "left") {
    const { context } = this;
    context.font = this.font;
    context.fillStyle = colour;
    context.textAlign = align;
    context.textBaseline = "middle";
    context.fillText(text, x, y + 0.5);
  }

  /**
   * A line of one pixel, dotted with a `dash`.
   * @param {[x: number, y: number]} from
   * @param {[x: number, y: number]} to
   * @param {string} colour
   * @param {number[]} dash
   */
  line(from, to, colour, dash = []) {
    const { context } = this;
    context.strokeStyle = colour;
    context.lineWidth = 1;
    context.setLineDash(dash);
    context.beginPath();
    context.moveTo(Math.round(from[0]) + 0.5, Math.round(from[1]) + 0.5);
    context.lineTo(Math.round(to[0]) + 0.5, Math.round(to[1]) + 0.5);
    context.stroke();
    context.setLineDash([]);
  }

  /** Draws only between the margins. @param {() => void} draw */
  clipped(draw) {
    const { context } = this;
    context.save();
    context.beginPath();
    context.rect(this.left, this.top, this.right - this.left, this.bottom - this.top);
    context.clip();
    draw();
    context.restore();
  }
}

/**
 * The topmost shape at a point; where there is none, the nearest of those that are too narrow to point at.
 * @param {Shape[]} shapes
 * @param {number} x
 * @param {number} y
 * @returns {Shape | null}
 */
export function shapeAt(shapes, x, y) {
  const near = shapes.filter(
    (shape) => shape.y <= y && y < shape.y + shape.height && shape.x - REACH <= x && x < shape.x + shape.width + REACH,
  );
  const on = near.findLast((shape) => shape.x <= x && x < shape.x + shape.width);
  return on ?? near.filter((shape) => shape.width < 2 * REACH).pop() ?? null;
}
