// A small text at the pointer.

import { h } from "../dom.js";

/** Pixels between the pointer and the text. */
const APART = 14;

export class Tooltip {
  #holder;
  #lines = "";

  /** @param {HTMLElement} holder the positioned element that the text stays within */
  constructor(holder) {
    this.#holder = holder;
    this.element = h("div", { class: "mtprof-tooltip", role: "tooltip", hidden: true });
    holder.append(this.element);
  }

  /**
   * @param {string[]} lines the first one is bold
   * @param {{ clientX: number, clientY: number }} pointer
   */
  show(lines, { clientX, clientY }) {
    const text = lines.join("\n");
    if (text !== this.#lines) {
      const [first, ...rest] = lines;
      this.element.replaceChildren(h("b", { text: first }), ...rest.map((line) => h("div", { text: line })));
      this.#lines = text;
    }
    this.element.hidden = false;
    const holder = this.#holder.getBoundingClientRect();
    const { offsetWidth: width, offsetHeight: height } = this.element;
    const [x, y] = [clientX - holder.left, clientY - holder.top];
    const left = x + APART + width < holder.width ? x + APART : Math.max(x - APART - width, 4);
    const top = y + APART + height < holder.height ? y + APART : Math.max(y - APART - height, 4);
    Object.assign(this.element.style, { left: `${left}px`, top: `${top}px` });
  }

  hide() {
    this.element.hidden = true;
  }
}
