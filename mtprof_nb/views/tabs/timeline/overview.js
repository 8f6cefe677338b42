// The whole recording in small, above a timeline.

import { svg } from "../../web/dom.js";

/** @import { TimeWindow } from "../../web/drawing/time_window.js" */

/** How busy the recording was, and which part is in view. Drag to move there. */
export class Overview {
  #whole;
  #window;
  #bins;
  /** @type {TimeWindow} */
  #view;

  /** @param {number[]} busy @param {number} whole @param {(window: TimeWindow) => void} go */
  constructor(busy, whole, go) {
    this.#whole = whole;
    this.#view = [0, whole];
    this.#bins = busy.length;
    const outline = busy
      .map((part, at) => `L${at},${(1 - part).toFixed(3)}L${at + 1},${(1 - part).toFixed(3)}`)
      .join("");
    const path = svg("path", { d: `M0,1${outline}L${busy.length},1Z`, class: "mtprof-busy" });
    this.#window = svg("rect", { y: 0, height: 1, class: "mtprof-window" });
    this.element = svg(
      "svg",
      {
        class: "mtprof-overview",
        viewBox: `0 0 ${busy.length} 1`,
        preserveAspectRatio: "none",
        role: "img",
        "aria-label": "How busy the recording was, and the part in view",
      },
      path,
      this.#window,
    );
    this.#listen(go);
  }

  /** @param {(window: TimeWindow) => void} go */
  #listen(go) {
    /** @param {PointerEvent} event */
    const move = (event) => {
      const box = this.element.getBoundingClientRect();
      const at = ((event.clientX - box.left) / box.width) * this.#whole;
      const length = this.#view[1] - this.#view[0];
      if (length < this.#whole) go([at - length / 2, at + length / 2]);
    };
    this.element.addEventListener("pointerdown", (event) => {
      this.element.setPointerCapture(event.pointerId);
      move(event);
    });
    this.element.addEventListener("pointermove", (event) => event.buttons && move(event));
  }

  /** @param {TimeWindow} view */
  show(view) {
    this.#view = view;
    const scale = this.#bins / this.#whole;
    this.#window.classList.toggle("mtprof-whole", view[1] - view[0] >= this.#whole * 0.999);
    this.#window.setAttribute("x", String(view[0] * scale));
    this.#window.setAttribute("width", String(Math.max((view[1] - view[0]) * scale, 1)));
  }
}
