// Pointer, wheel and keys on a chart of time: zoom, pan, point and click.

/**
 * @import { TimeWindow } from "./time_window.js"
 * @typedef {object} Moved what gestures move
 * @property {HTMLElement} element
 * @property {TimeWindow} window
 * @property {TimeWindow} whole
 * @property {"zoom" | "pan"} dragmode
 * @property {(clientX: number) => number} momentAt the moment under a pixel of the screen
 * @property {(window: TimeWindow) => void} go
 * @property {(factor: number, part?: number) => void} zoom
 * @property {(part: number) => void} pan
 * @property {(box: TimeWindow | null) => void} frame shows the window that a drag would zoom to
 * @property {(event: PointerEvent | null) => void} point the pointer is there, or has left
 * @property {(event: PointerEvent) => void} click
 */

/** A shorter drag is a click. */
const DRAG_PIXELS = 4;
const WHEEL_ZOOM = 1.4;

/** @param {Moved} chart @param {Record<string, () => void>} keys further keys and what they do */
export function listen(chart, keys) {
  const { element } = chart;
  const drag = new Drag(chart);
  element.addEventListener("pointerdown", (event) => drag.begin(event));
  element.addEventListener("pointermove", (event) => (drag.isOn ? drag.move(event) : chart.point(event)));
  element.addEventListener("pointerup", (event) => drag.end(event));
  element.addEventListener("pointercancel", () => drag.stop());
  element.addEventListener("pointerleave", () => chart.point(null));
  element.addEventListener("dblclick", () => chart.go(chart.whole));
  element.addEventListener("wheel", (event) => wheel(chart, event), { passive: false });
  element.addEventListener("keydown", (event) => press(chart, event, keys));
}

class Drag {
  #chart;
  #from = 0;
  #begin = 0;
  /** @type {TimeWindow} */
  #window = [0, 0];
  #pans = false;
  #isFar = false;
  isOn = false;

  /** @param {Moved} chart */
  constructor(chart) {
    this.#chart = chart;
  }

  /** @param {PointerEvent} event */
  begin(event) {
    if (event.button !== 0 && event.button !== 1) return;
    const chart = this.#chart;
    chart.element.setPointerCapture(event.pointerId);
    this.#from = event.clientX;
    this.#begin = chart.momentAt(event.clientX);
    this.#window = chart.window;
    this.#pans = chart.dragmode === "pan" || event.shiftKey || event.button === 1;
    this.#isFar = false;
    this.isOn = true;
  }

  /** @param {PointerEvent} event */
  move({ clientX }) {
    const chart = this.#chart;
    this.#isFar ||= Math.abs(clientX - this.#from) >= DRAG_PIXELS;
    if (!this.#isFar) return;
    chart.point(null);
    if (!this.#pans) return chart.frame(this.#box(clientX));
    const by = this.#begin - chart.momentAt(clientX) + chart.window[0] - this.#window[0];
    chart.go([this.#window[0] + by, this.#window[1] + by]);
  }

  /** @param {number} clientX @returns {TimeWindow} */
  #box(clientX) {
    const [begin, end] = this.#window;
    const at = Math.min(Math.max(this.#chart.momentAt(clientX), begin), end);
    return this.#begin < at ? [this.#begin, at] : [at, this.#begin];
  }

  /** @param {PointerEvent} event */
  end(event) {
    if (!this.isOn) return;
    this.stop();
    if (!this.#isFar) this.#chart.click(event);
    else if (!this.#pans) this.#chart.go(this.#box(event.clientX));
  }

  stop() {
    this.isOn = false;
    this.#chart.frame(null);
  }
}

/** @param {Moved} chart @param {WheelEvent} event */
function wheel(chart, event) {
  // Without a key, the wheel scrolls the page.
  if (!event.ctrlKey && !event.metaKey && !event.altKey && !event.shiftKey) return;
  event.preventDefault();
  const steps = Math.sign(event.deltaY || event.deltaX);
  if (event.shiftKey) return chart.pan(0.15 * steps);
  const [begin, end] = chart.window;
  const part = Math.min(Math.max((chart.momentAt(event.clientX) - begin) / (end - begin), 0), 1);
  chart.zoom(steps > 0 ? WHEEL_ZOOM : 1 / WHEEL_ZOOM, part);
}

/** @param {Moved} chart @param {KeyboardEvent} event @param {Record<string, () => void>} keys */
function press(chart, event, keys) {
  /** @type {Record<string, () => void>} */
  const acts = {
    ArrowLeft: () => chart.pan(-0.2),
    ArrowRight: () => chart.pan(0.2),
    "+": () => chart.zoom(0.5),
    "=": () => chart.zoom(0.5),
    "-": () => chart.zoom(2),
    0: () => chart.go(chart.whole),
    ...keys,
  };
  if (!(event.key in acts) || event.ctrlKey || event.metaKey) return;
  event.preventDefault();
  event.stopPropagation();
  acts[event.key]();
}
