// A chart on a canvas, with a tooltip: what all such charts share.

import { Surface } from "./surface.js";
import { Tooltip } from "./tooltip.js";

/** @import { Shape } from "./plane.js" */

export class CanvasChart {
  /** @param {HTMLElement} holder a positioned element around the chart, which tooltips stay within @param {HTMLElement} element */
  constructor(holder, element) {
    this.element = element;
    this.surface = new Surface(element, (context, width, height) => this.paint(context, width, height));
    this.tooltip = new Tooltip(holder);
  }

  /**
   * Draws, in pixels of the page, and returns what it drew.
   * @abstract
   * @param {CanvasRenderingContext2D} _context
   * @param {number} _width
   * @param {number} _height
   * @returns {Shape[]}
   */
  paint(_context, _width, _height) {
    return [];
  }

  draw() {
    this.surface.draw();
  }

  /** Draws now, and not before the next frame: none comes before a page is printed. */
  print() {
    this.surface.paint();
  }

  destroy() {
    this.surface.destroy();
    this.tooltip.element.remove();
  }
}
