// An icicle: callees below their caller, as wide as their part of it.

import { svg } from "../../web/dom.js";
import { fitted } from "../../web/label.js";

/** @import { Place } from "./slices.js" */

const LEAST_ROW = 20;
const TALLEST_ROW = 34;
/** Pixels that are free beside a name. */
const INSET = 5;
/** A narrower slice is not drawn. */
const NARROWEST = 0.25;

export class Icicle {
  /** @param {{ width: number, height: number, levels: number, font: string }} room */
  constructor({ width, height, levels, font }) {
    this.font = font;
    this.width = width;
    this.rowPixels = Math.max(Math.min(height / levels, TALLEST_ROW), LEAST_ROW);
    this.height = Math.max(this.rowPixels * levels, height);
  }

  /**
   * The elements of a slice while `focus` is as wide as the chart, none where it is out of view. Callers of the focus
   * stay, so that a click on one leads back.
   * @param {Place} place
   * @param {Place} focus
   * @param {string} label
   */
  draw(place, focus, label) {
    const size = focus.end - focus.begin;
    const left = Math.max((place.begin - focus.begin) / size, 0) * this.width;
    const right = Math.min((place.end - focus.begin) / size, 1) * this.width;
    if (right - left < NARROWEST) return null;
    const [y, width] = [place.level * this.rowPixels, Math.max(right - left - 1, NARROWEST)];
    const name = fitted(label, width - 2 * INSET, this.font);
    return {
      shape: svg("rect", { x: left, y, width, height: this.rowPixels - 1 }),
      text: name ? svg("text", { x: left + INSET, y: y + this.rowPixels / 2 + 3.5, text: name }) : null,
    };
  }
}
