// A chart on a canvas, with a tooltip: what all such charts share.

import { Tooltip } from "./tooltip.js";

/**
 * @import { Shape } from "./plane.js"
 * @typedef {HTMLCanvasElement & { shapes: Shape[] }} Drawn a canvas that knows what is drawn on it
 */

/** The canvas follows the size of its element and the resolution of the screen, and is painted at most once a frame. */
export class CanvasChart {
  #frame = 0;
  #observer = new ResizeObserver(() => this.draw());
  canvas = /** @type {Drawn} */ (Object.assign(document.createElement("canvas"), { shapes: [] }));

  /** @param {HTMLElement} holder a positioned element around the chart, which tooltips stay within @param {HTMLElement} element */
  constructor(holder, element) {
    this.element = element;
    this.tooltip = new Tooltip(holder);
    this.canvas.className = "mtprof-canvas";
    this.canvas.setAttribute("aria-hidden", "true");
    element.prepend(this.canvas);
    this.#observer.observe(element);
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

  /** Paints before the next frame; a hidden canvas once it is shown. */
  draw() {
    this.#frame ||= requestAnimationFrame(() => {
      this.#frame = 0;
      this.print();
    });
  }

  /** Paints now: no frame comes before a page is printed. */
  print() {
    const { clientWidth: width, clientHeight: height } = this.element;
    const context = this.canvas.getContext("2d");
    if (!width || !height || !context) return;
    const pixels = window.devicePixelRatio || 1;
    const [wide, high] = [Math.round(width * pixels), Math.round(height * pixels)];
    if (this.canvas.width !== wide || this.canvas.height !== high) {
      Object.assign(this.canvas, { width: wide, height: high });
      Object.assign(this.canvas.style, { width: `${width}px`, height: `${height}px` });
    }
    context.setTransform(pixels, 0, 0, pixels, 0, 0);
    context.clearRect(0, 0, width, height);
    this.canvas.shapes = this.paint(context, width, height);
  }

  destroy() {
    cancelAnimationFrame(this.#frame);
    this.#observer.disconnect();
    this.tooltip.element.remove();
  }
}
