// Lanes of a timeline: rows below one another, with a title on the left.

import { fitted, textWidth } from "../label.js";

/**
 * @import { Lane } from "../types/messages"
 * @import { Plane } from "./plane.js"
 */

const LEAST_ROW = 18;
const TALLEST_ROW = 30;

/** Where lanes and their rows are, in pixels from the top of the first. */
export class LaneRows {
  /** @type {number[]} the top of each row, in rows */
  #tops = [];
  rowPixels = LEAST_ROW;

  /** @param {Lane[]} lanes */
  constructor(lanes) {
    this.lanes = lanes;
    for (const { rows, rows_top } of lanes) for (let row = 0; row < rows; row++) this.#tops.push(rows_top + row);
    /** In rows, with the gaps between lanes. */
    this.length = lanes.at(-1)?.bottom ?? 1;
  }

  /** Pixels that the widest title takes. @param {Element} host whose font the titles have */
  widest(host) {
    const font = `11px ${getComputedStyle(host).fontFamily}`;
    return Math.ceil(Math.max(0, ...this.lanes.map(({ title }) => textWidth(title, font)))) + 16;
  }

  /** Fits the rows into so many pixels: a few rows are drawn taller, many rows keep a height that can be read. */
  fit(/** @type {number} */ pixels) {
    this.rowPixels = Math.max(Math.min(pixels / this.length, TALLEST_ROW), LEAST_ROW);
  }

  /** The height of all lanes. */
  get height() {
    return this.length * this.rowPixels;
  }

  /** The top of a row on the plane. @param {Plane} plane @param {number} row */
  y(plane, row) {
    return this.#at(plane, this.#tops[row]);
  }

  /** The top of a lane on the plane, with what stands above its rows. @param {Plane} plane @param {number} lane */
  top(plane, lane) {
    return this.#at(plane, this.lanes[lane].top);
  }

  /** @param {Plane} plane @param {number} rows from the top */
  #at(plane, rows) {
    return plane.top - plane.scroll + rows * this.rowPixels;
  }

  /** Lines between the lanes. @param {Plane} plane */
  paintLines(plane) {
    for (const [lane, { bottom }] of this.lanes.slice(0, -1).entries()) {
      const y = (this.#at(plane, bottom) + this.top(plane, lane + 1)) / 2;
      if (plane.shows(y, 1)) plane.line([plane.left, y], [plane.right, y], plane.theme.line);
    }
  }

  /** Titles, cut to fit; the whole title shows on hover. @param {Plane} plane */
  paintTitles(plane) {
    const { context, theme } = plane;
    context.save();
    context.beginPath();
    context.rect(0, plane.top, plane.left, plane.bottom - plane.top);
    context.clip();
    for (const [lane, { title, bottom }] of this.lanes.entries()) {
      const [top, end] = [this.top(plane, lane), this.#at(plane, bottom)];
      if (!plane.shows(top, end - top)) continue;
      // In the middle of the part that is in view.
      const y = (Math.max(top, plane.top) + Math.min(end, plane.bottom)) / 2;
      plane.write(fitted(title, plane.left - 16, plane.font), plane.left - 8, y, theme.quiet, "right");
      plane.shapes.push({ x: 0, y: top, width: plane.left, height: end - top, label: title, describe: () => [title] });
    }
    context.restore();
  }
}
