// Shapes of stacks: an icicle has callees below their caller, a sunburst around it.

import { svg } from "../../web/dom.js";
import { fitted } from "../../web/label.js";

/** @import { Place } from "./slices.js" */

const LEAST_ROW = 20;
const TALLEST_ROW = 34;
const MOST_RINGS = 7;
const TALLEST_RING = 70;
const TURN = 2 * Math.PI;
/** Pixels of an arc that a line of text needs. */
const TEXT_PIXELS = 12;
/** Pixels that are free before and after a name. */
const [INSET, ARC_INSET] = [5, 4];
/** A narrower slice is not drawn. */
const NARROWEST = 0.25;

/** Callees below their caller, as wide as their part of it. */
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

/** Callees around their caller, over the angle of their part of it. */
export class Sunburst {
  /** @param {{ width: number, height: number, levels: number, font: string }} room */
  constructor({ width, height, levels, font }) {
    this.font = font;
    this.width = width;
    this.height = height;
    const radius = Math.min(width, height) / 2 - 4;
    this.rings = Math.min(levels, MOST_RINGS);
    this.ring = Math.min(radius / (this.rings + 0.2), TALLEST_RING);
  }

  /**
   * The elements of a slice while `focus` is in the middle, none where it is out of view.
   * @param {Place} place
   * @param {Place} focus
   * @param {string} label
   */
  draw(place, focus, label) {
    const ring = place.level - focus.level;
    if (ring <= -1 || ring >= this.rings) return null;
    const size = focus.end - focus.begin;
    const from = Math.max((place.begin - focus.begin) / size, 0) * TURN;
    const to = Math.min((place.end - focus.begin) / size, 1) * TURN;
    const [inner, outer] = [Math.max(ring * this.ring, 0), (ring + 1) * this.ring];
    if ((to - from) * outer < NARROWEST) return null;
    const shape = svg("path", { d: this.#arc(from, to, inner, outer - 1) });
    return { shape, text: ring < 0.5 ? this.#middle(label) : this.#name(label, (from + to) / 2, to - from, inner) };
  }

  /** @param {number} angle from the top @param {number} radius */
  #point(angle, radius) {
    const [x, y] = [this.width / 2 + radius * Math.sin(angle), this.height / 2 - radius * Math.cos(angle)];
    return `${x.toFixed(2)},${y.toFixed(2)}`;
  }

  /** @param {number} from @param {number} to @param {number} inner @param {number} outer @returns {string} */
  #arc(from, to, inner, outer) {
    // An arc of a whole turn would end where it begins, and not be drawn.
    if (to - from > 0.999 * TURN)
      return `${this.#arc(from, from + TURN / 2, inner, outer)}${this.#arc(from + TURN / 2, to - 0.001, inner, outer)}`;
    const large = to - from > Math.PI ? 1 : 0;
    const out = `M${this.#point(from, outer)}A${outer},${outer},0,${large},1,${this.#point(to, outer)}`;
    const back = inner > 0 ? `A${inner},${inner},0,${large},0,${this.#point(from, inner)}` : "";
    return `${out}L${this.#point(to, inner)}${back}Z`;
  }

  /** @param {string} label */
  #middle(label) {
    const text = fitted(label, 2 * this.ring - 2 * ARC_INSET, this.font);
    return svg("text", { x: this.width / 2, y: this.height / 2 + 3.5, "text-anchor": "middle", text });
  }

  /**
   * A name along the arc or along the radius, wherever it has more room, and never upside down.
   * @param {string} label
   * @param {number} angle of its middle
   * @param {number} wide angle of the slice
   * @param {number} inner radius
   */
  #name(label, angle, wide, inner) {
    const radius = inner + this.ring / 2;
    const along = Math.min(wide * radius, straight(radius, this.ring)) - 2 * ARC_INSET;
    const outwards = wide * radius < TEXT_PIXELS ? 0 : this.ring - 2 * ARC_INSET;
    const text = fitted(label, Math.max(along, outwards), this.font);
    if (!text) return null;
    const turned = (angle / TURN) * 360 + (outwards > along ? -90 : 0);
    const upright = ((turned + 450) % 360) - 90;
    const turn = upright > 90 ? upright - 180 : upright;
    const place = `translate(${this.#point(angle, radius)}) rotate(${turn.toFixed(2)})`;
    return svg("text", { transform: place, dy: 3.5, "text-anchor": "middle", text });
  }
}

/** How long a straight line of text may be in the middle of a ring. @param {number} radius @param {number} ring */
function straight(radius, ring) {
  const sagitta = Math.max((ring - TEXT_PIXELS) / 2, 0);
  return 2 * Math.sqrt(Math.max(radius ** 2 - (radius - sagitta) ** 2, 0));
}
