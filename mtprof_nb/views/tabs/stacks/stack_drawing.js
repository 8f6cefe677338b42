// A drawing of slices as SVG: zooms to a slice by click or key, describes what the pointer is on, and follows its size.

import { h, svg } from "../../web/dom.js";
import { share, writers } from "../../web/format.js";
import { colours } from "../../web/theme.js";
import { between, laidOut, withCallers } from "./slices.js";
import { Icicle, Sunburst } from "./stack_shapes.js";
import { Tooltip } from "../../web/drawing/tooltip.js";

/**
 * @import { Family } from "../../web/types/messages"
 * @import { DrawnChart } from "./folding.js"
 * @import { Place } from "./slices.js"
 * @typedef {"icicle" | "sunburst"} Shape
 * @typedef {object} Actions
 * @property {(slice: number) => void} onpick of a click on a slice
 * @property {(slice: number) => void} onopen of a click on the folded frames of a library
 */

const SHAPES = { icicle: Icicle, sunburst: Sunburst };
/** Opacity of a slice by whether there are selected events: neither, below it, its own. */
const STRENGTHS = [0.15, 0.75, 1];
const ZOOM_MS = 220;
const LABEL = "Stacks: who called whom. Arrows move, Enter zooms and selects, 0 for all";
let drawings = 0;

export class StackDrawing {
  #chart;
  #fills;
  #tree;
  #tooltip;
  #pick;
  #open;
  /** The slice that is as wide as the drawing, and the one that keys move. */
  #focus = 0;
  #cursor = 0;
  /** @type {Place} what is as wide as the drawing now: on the way to the focus */
  #view;
  #frame = 0;
  #prefix = `mtprof-stack-${++drawings}`;
  #svg = svg("svg", { class: "mtprof-slices", role: "tree", tabindex: 0, "aria-label": LABEL });
  #observer = new ResizeObserver(() => this.draw());
  /** @type {Shape} */
  shape;

  /**
   * @param {HTMLElement} holder a positioned element around the drawing, which tooltips stay within
   * @param {{ chart: DrawnChart, fills: Family[], shape: Shape } & Actions} options
   */
  constructor(holder, { chart, fills, shape, onpick, onopen }) {
    this.#chart = chart;
    this.#fills = fills;
    this.#pick = onpick;
    this.#open = onopen;
    this.shape = shape;
    this.#tree = laidOut(chart.slices);
    this.#view = this.#tree.places[0];
    this.element = h("div", { class: "mtprof-stage mtprof-scroll" }, this.#svg);
    this.#tooltip = new Tooltip(holder);
    this.#listen();
    this.#observer.observe(this.element);
  }

  #listen() {
    this.#svg.addEventListener("click", (event) => this.#choose(this.#sliceOf(event.target)));
    this.#svg.addEventListener("keydown", (event) => this.#key(event));
    this.#svg.addEventListener("pointerleave", () => this.#tooltip.hide());
    this.#svg.addEventListener("pointermove", (event) => {
      const slice = this.#sliceOf(event.target);
      if (slice < 0) this.#tooltip.hide();
      else this.#tooltip.show(this.#description(slice), event);
    });
  }

  destroy() {
    cancelAnimationFrame(this.#frame);
    this.#observer.disconnect();
    this.#tooltip.element.remove();
  }

  /** Shows another chart; while slices mean the same, the zoom stays. @param {DrawnChart} chart */
  show(chart) {
    const isSame = chart.metric === this.#chart.metric;
    const [focus, cursor] = [this.#focus, this.#cursor].map((slice) => this.#chart.slices.id[slice]);
    this.#chart = chart;
    this.#tree = laidOut(chart.slices);
    /** @param {number} id */
    const positionOf = (id) => (isSame ? Math.max(chart.slices.id.indexOf(id), 0) : 0);
    [this.#focus, this.#cursor] = [positionOf(focus), positionOf(cursor)];
    this.#view = this.#tree.places[this.#focus];
    this.draw();
  }

  draw() {
    const { clientWidth: width, clientHeight: height } = this.element;
    if (!width || !height) return;
    const theme = colours(this.element);
    const room = { width: width - 2, height: height - 2, levels: this.#tree.levels, font: `11px ${theme.font}` };
    const drawn = new SHAPES[this.shape](room);
    this.#svg.setAttribute("width", String(drawn.width));
    this.#svg.setAttribute("height", String(drawn.height));
    // In print, the place may be narrower.
    this.#svg.setAttribute("viewBox", `0 0 ${drawn.width} ${drawn.height}`);
    const slices = this.#tree.places.map((place, slice) => this.#slice(drawn, place, slice));
    this.#svg.replaceChildren(...slices.filter((slice) => slice !== null));
    this.#svg.setAttribute("aria-activedescendant", `${this.#prefix}-${this.#cursor}`);
  }

  /** @param {Icicle | Sunburst} drawn @param {Place} place @param {number} slice */
  #slice(drawn, place, slice) {
    const { label, fill, lit } = this.#chart.slices;
    const parts = drawn.draw(place, this.#view, label[slice]);
    if (!parts) return null;
    const { colour, ink } = this.#fills[fill[slice]];
    const strength = lit ? STRENGTHS[lit[slice]] : 1;
    parts.shape.setAttribute("fill", colour);
    parts.shape.setAttribute("fill-opacity", String(strength));
    parts.text?.setAttribute("fill", lit && lit[slice] === 0 ? "#8a9199" : ink);
    return svg(
      "g",
      {
        class: `mtprof-slice${slice === this.#cursor ? " mtprof-cursor" : ""}`,
        id: `${this.#prefix}-${slice}`,
        role: "treeitem",
        "aria-level": place.level + 1,
        "aria-label": this.#description(slice).slice(0, 2).join(", "),
        "data-slice": slice,
      },
      parts.shape,
      parts.text,
    );
  }

  /** @param {EventTarget | null} target */
  #sliceOf(target) {
    const slice = target instanceof Element ? target.closest("[data-slice]") : null;
    return Number(slice?.getAttribute("data-slice") ?? -1);
  }

  /** @param {number} slice */
  #description(slice) {
    const { slices, title, unit, called_by } = this.#chart;
    const [total, own, folded] = [slices.total[slice], slices.own[slice], slices.folded[slice]];
    const write = writers[unit];
    return [
      folded ? `${folded} small slice${folded === 1 ? "" : "s"}` : slices.full[slice],
      `${write(total)} ${title}, ${share(total, slices.total[0])} of all`,
      ...(slices.ranks?.[slice] ? [slices.ranks[slice]] : []),
      ...(slices.frames[slice] > 1 ? ["click to open them"] : []),
      ...(own > 0 && own < total ? [`${write(own)} of it its own`] : []),
      ...(slice === 0 ? called_by.map((caller) => `called by ${caller}`) : []),
    ];
  }

  /** Zooms to a slice, or from the focus back to its caller, and picks it. @param {number} slice */
  #choose(slice) {
    if (slice < 0) return;
    if (this.#chart.slices.frames[slice] > 1) return this.#unfold(slice);
    const isLeaf = this.#tree.callees[slice].length === 0;
    const caller = Math.max(this.#chart.slices.parent[slice], 0);
    this.#cursor = slice;
    if (slice === this.#focus) this.#zoom(caller);
    else if (!isLeaf) this.#zoom(slice);
    this.#pick(slice);
    this.draw();
  }

  /** @param {number} slice of folded frames */
  #unfold(slice) {
    this.#cursor = slice;
    this.#tooltip.hide();
    this.#open(slice);
  }

  /** @param {number} slice */
  #zoom(slice) {
    const [from, to, began] = [this.#view, this.#tree.places[slice], performance.now()];
    this.#focus = slice;
    this.#tooltip.hide();
    const length = matchMedia("(prefers-reduced-motion: reduce)").matches ? 0 : ZOOM_MS;
    /** @param {number} now */
    const step = (now) => {
      const part = length ? Math.min((now - began) / length, 1) : 1;
      this.#view = between(from, to, 1 - (1 - part) ** 3);
      this.draw();
      if (part < 1) this.#frame = requestAnimationFrame(step);
    };
    cancelAnimationFrame(this.#frame);
    this.#frame = requestAnimationFrame(step);
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    const { parent } = this.#chart.slices;
    const { callees } = this.#tree;
    const siblings = callees[parent[this.#cursor]] ?? [this.#cursor];
    const at = siblings.indexOf(this.#cursor);
    /** @type {Record<string, number | undefined>} */
    const targets = {
      ArrowDown: callees[this.#cursor][0],
      ArrowUp: Math.max(parent[this.#cursor], 0),
      ArrowLeft: siblings[at - 1],
      ArrowRight: siblings[at + 1],
    };
    if (event.key in targets) this.#moveTo(targets[event.key] ?? this.#cursor);
    else if (event.key === "Enter" || event.key === " ") this.#choose(this.#cursor);
    else if (event.key === "0") this.#zoom(0);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  /** Moves the cursor; a slice out of view is zoomed out to. @param {number} slice */
  #moveTo(slice) {
    this.#cursor = slice;
    const isInView = withCallers(this.#chart.slices, slice).includes(this.#focus);
    if (!isInView) this.#zoom(Math.max(this.#chart.slices.parent[slice], 0));
    this.draw();
  }
}
