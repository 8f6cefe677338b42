// A canvas that follows the size of its element and the resolution of the screen, painted at most once a frame.

/** @import { Shape } from "./plane.js" */

/**
 * A canvas that knows what is drawn on it.
 * @typedef {HTMLCanvasElement & { shapes: Shape[] }} Drawn
 */

export class Surface {
  #host;
  #paint;
  #frame = 0;
  #observer = new ResizeObserver(() => this.draw());

  /**
   * @param {HTMLElement} host
   * @param {(context: CanvasRenderingContext2D, width: number, height: number) => Shape[]} paint draws, in pixels of
   *   the page, and returns what it drew
   */
  constructor(host, paint) {
    this.#host = host;
    this.#paint = paint;
    this.element = /** @type {Drawn} */ (Object.assign(document.createElement("canvas"), { shapes: [] }));
    this.element.className = "mtprof-canvas";
    this.element.setAttribute("aria-hidden", "true");
    host.prepend(this.element);
    this.#observer.observe(host);
  }

  /** Paints before the next frame; a hidden canvas once it is shown. */
  draw() {
    this.#frame ||= requestAnimationFrame(() => {
      this.#frame = 0;
      this.paint();
    });
  }

  /** Paints now. */
  paint() {
    const { clientWidth: width, clientHeight: height } = this.#host;
    const context = this.element.getContext("2d");
    if (!width || !height || !context) return;
    const pixels = window.devicePixelRatio || 1;
    const [wide, high] = [Math.round(width * pixels), Math.round(height * pixels)];
    if (this.element.width !== wide || this.element.height !== high) {
      Object.assign(this.element, { width: wide, height: high });
      Object.assign(this.element.style, { width: `${width}px`, height: `${height}px` });
    }
    context.setTransform(pixels, 0, 0, pixels, 0, 0);
    context.clearRect(0, 0, width, height);
    this.element.shapes = this.#paint(context, width, height);
  }

  destroy() {
    cancelAnimationFrame(this.#frame);
    this.#observer.disconnect();
  }
}
