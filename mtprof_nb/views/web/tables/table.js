// A table of any length: only the visible rows are elements. Sorts by number, selects with mouse and keyboard.

import { h } from "../dom.js";
import { share, writers } from "../format.js";
import { fittedMiddle, plainName, textWidth } from "../label.js";

const ROW_PIXELS = 24;
const SPARE_ROWS = 6;
/** The most rows that are printed. */
const PRINTED_ROWS = 200;
const NAME_PIXELS = 190;
/** Pixels around a name in its cell: room at both ends, and the colour of its family. */
const NAME_INSET = 41;
/** The most of a name's cell that its detail takes where both do not fit, and pixels between them. */
const [DETAIL_PART, DETAIL_GAP] = [0.42, 8];
const WIDTHS = {
  ...{ count: 72, time: 82, share: 96, bytes: 88, flops: 98, held: 92, percent: 86, rate: 92 },
  ...{ change: 96, ratio: 62, text: 104, words: 190, rank: 76 },
};
let tables = 0;

/**
 * @import { Column, Family, Rows } from "../types/messages"
 * @import { Sort } from "./row_order.js"
 * @typedef {object} TableOptions
 * @property {string} label
 * @property {string} nameTitle
 * @property {Family[]} [families]
 * @property {(label: string, row: number) => string} [nameOf] a name as it is shown; without it, kernels lose parameters
 * @property {(detail: string, row: number) => string} [detailOf] a detail as it is shown; without it, all of it
 * @property {() => void} onsort called after a click on a column's head has changed `sort`
 * @property {(id: number | null, row: number) => void} onselect with null and -1 where the selection is cleared
 */
export class Table {
  /** @type {Column[]} */
  #columns = [];
  /** @type {Rows} */
  #rows = { id: [], label: [], detail: [], value: {} };
  /** @type {number[]} */
  #order = [];
  #cursor = 0;
  /** @type {number | null} */
  #selected = null;
  /** @type {Set<number>} ids of rows that a selection elsewhere touches */
  #lit = new Set();
  /** @type {Record<string, number>} the largest number of each column that has shares */
  #largest = {};
  #sentence = "";
  #isPrinted = false;
  #observer = new ResizeObserver(() => this.#draw());
  #prefix = `mtprof-table-${++tables}`;

  /** @param {TableOptions} options */
  constructor(options) {
    this.options = options;
    /** @type {Sort} */
    this.sort = { key: "", descending: true };
    /** @type {Record<string, number>} what shares are shares of */
    this.wholes = {};
    this.head = h("div", { class: "mtprof-head", role: "row", "aria-rowindex": "1" });
    this.body = h("div", { class: "mtprof-rows", role: "rowgroup" });
    this.element = h(
      "div",
      {
        class: "mtprof-table",
        role: "grid",
        tabindex: "0",
        "aria-label": options.label,
        onscroll: () => this.#draw(),
        onkeydown: (event) => this.#key(event),
      },
      this.head,
      this.body,
    );
    this.body.addEventListener("click", (event) => {
      /** @type {HTMLElement | null} */
      const row = /** @type {Element} */ (event.target).closest("[data-position]");
      if (row) this.#choose(Number(row.dataset.position));
    });
    this.#observer.observe(this.element);
  }

  destroy() {
    this.#observer.disconnect();
  }

  /** @param {Column[]} columns @param {Rows} rows @param {Record<string, number>} wholes what shares are shares of */
  fill(columns, rows, wholes = {}) {
    this.#columns = columns;
    this.#rows = rows;
    this.wholes = wholes;
    const widths = columns.map((column) => WIDTHS[column.unit]);
    this.#lay("wide", widths);
    const narrower = widths.map((width) => Math.round(width * 0.86));
    this.#lay("narrow", narrower);
    const largest = columns.map(({ of }) => [of, Math.max(...(rows.value[of] ?? []).map((ns) => ns ?? 0), 1)]);
    this.#largest = Object.fromEntries(largest);
    this.#drawHead();
  }

  /**
   * Widths of the columns, for a wide panel and for a narrow one; the style sheet takes the one that fits.
   * @param {"wide" | "narrow"} kind
   * @param {number[]} widths
   */
  #lay(kind, widths) {
    const style = this.element.style;
    style.setProperty(
      `--mtprof-${kind}-columns`,
      `minmax(${NAME_PIXELS}px, 1fr) ${widths.map((width) => `${width}px`).join(" ")}`,
    );
    style.setProperty(`--mtprof-${kind}-least`, `${widths.reduce((sum, width) => sum + width, NAME_PIXELS)}px`);
  }

  /**
   * Positions of the rows to show, in their order; where there are none, `sentence` is why.
   * @param {number[]} order
   */
  show(order, sentence = "") {
    this.#order = order;
    this.#sentence = sentence;
    this.#cursor = Math.min(this.#cursor, Math.max(order.length - 1, 0));
    this.body.style.height = `${this.#listed * ROW_PIXELS}px`;
    this.element.setAttribute("aria-rowcount", String(order.length + 1));
    this.#draw();
  }

  /** How many rows there is room for. */
  get #listed() {
    return this.#isPrinted ? Math.min(this.#order.length, PRINTED_ROWS) : this.#order.length;
  }

  /** Draws all rows for a page that is printed, or again those in view. @param {boolean} isOn */
  print(isOn) {
    this.#isPrinted = isOn;
    this.show(this.#order, this.#sentence);
  }

  /** Marks the row with this id, and brings it into view. @param {number | null} id */
  select(id, reveal = true) {
    this.#selected = id;
    const position = this.#order.findIndex((row) => this.#rows.id[row] === id);
    if (position >= 0) {
      this.#cursor = position;
      if (reveal) this.#reveal(position);
    }
    this.#draw();
  }

  /** Marks the rows with these ids, which a selection elsewhere touches. @param {Iterable<number>} ids */
  light(ids) {
    this.#lit = new Set(ids);
    this.#draw();
  }

  /** The number that a column is sorted by. @param {string} column @param {number} row */
  number(column, row) {
    const { of, unit } = this.#columns.find(({ key }) => key === column) ?? {};
    const value = this.#rows.value[of || column]?.[row];
    // A value that is not known comes after all others.
    return value === null ? (unit === "held" ? Infinity : -Infinity) : (value ?? 0);
  }

  #drawHead() {
    const name = { key: "label", title: this.options.nameTitle, unit: "name", meaning: "by name" };
    const heads = [name, ...this.#columns].map((column) =>
      columnHead(column, this.sort, () => {
        const descending = this.sort.key === column.key ? !this.sort.descending : column.key !== "label";
        this.sort = { key: column.key, descending };
        this.options.onsort();
      }),
    );
    this.head.replaceChildren(...heads);
  }

  #draw() {
    const height = this.element.clientHeight || 300;
    const top = this.#isPrinted ? 0 : this.element.scrollTop;
    const first = Math.max(Math.floor(top / ROW_PIXELS) - SPARE_ROWS, 0);
    const visible = this.#isPrinted ? this.#listed : Math.ceil(height / ROW_PIXELS) + 2 * SPARE_ROWS;
    const last = Math.min(first + visible, this.#order.length);
    const { fontSize, fontFamily } = getComputedStyle(this.element);
    const nameHead = /** @type {HTMLElement | null} */ (this.head.firstElementChild);
    const room = (nameHead?.offsetWidth ?? 0) - NAME_INSET;
    const rows = [];
    for (let position = first; position < last; position++)
      rows.push(this.#row(position, room, `${fontSize} ${fontFamily}`));
    if (!rows.length && this.#sentence) rows.push(h("div", { class: "mtprof-no-rows", text: this.#sentence }));
    this.body.replaceChildren(...rows);
    const current = this.#order.length ? `${this.#prefix}-${this.#cursor}` : null;
    if (current) this.element.setAttribute("aria-activedescendant", current);
  }

  /**
   * @param {number} position among the shown rows
   * @param {number} room for its name, in pixels
   * @param {string} font
   */
  #row(position, room, font) {
    const row = this.#order[position];
    const { id, label, detail, family: families } = this.#rows;
    const { nameOf = plainName, detailOf = (text) => text } = this.options;
    const shortDetail = detailOf(detail[row], row);
    const selected = id[row] === this.#selected;
    const family = this.options.families?.[families?.[row] ?? -1];
    const detailPixels = shortDetail ? Math.min(textWidth(shortDetail, font) + DETAIL_GAP, room * DETAIL_PART) : 0;
    const fitted = room > 0 ? fittedMiddle(nameOf(label[row], row), room - detailPixels, font) : label[row];
    const numbers = this.#columns.map((column) => this.#cell(column, row, family));
    return h(
      "div",
      {
        class: ["mtprof-row", ...this.#marks(position)].join(" "),
        id: `${this.#prefix}-${position}`,
        role: "row",
        "aria-rowindex": String(position + 2),
        "aria-selected": String(selected),
        "data-position": String(position),
        style: `top:${position * ROW_PIXELS}px`,
      },
      nameCell(label[row], fitted, detail[row], shortDetail, family),
      ...numbers,
    );
  }

  /** Classes of the row at a position: whether it is selected, lit, or under the cursor. @param {number} position */
  #marks(position) {
    const id = this.#rows.id[this.#order[position]];
    const marks = {
      "mtprof-selected": id === this.#selected,
      "mtprof-lit": this.#lit.has(id),
      "mtprof-cursor": position === this.#cursor,
    };
    return Object.entries(marks).flatMap(([mark, isOn]) => (isOn ? [mark] : []));
  }

  /** @param {string} key @param {string} unit @param {number} row */
  #textCell(key, unit, row) {
    const { text, hint } = this.#rows;
    const attributes = { text: text?.[key]?.[row] ?? "", title: hint?.[key]?.[row] };
    return h("div", { class: `mtprof-cell mtprof-in-${unit}`, role: "gridcell", ...attributes });
  }

  /** @param {Column} column @param {number} row @param {Family} [family] */
  #cell({ key, unit, of }, row, family) {
    if (unit === "text" || unit === "words") return this.#textCell(key, unit, row);
    const value = this.number(key, row);
    const zero = value === 0 ? " mtprof-nothing" : "";
    const text = unit === "share" ? share(value, this.wholes[of]) : value === -Infinity ? "–" : writers[unit](value);
    const cell = h("div", { class: `mtprof-cell mtprof-in-${unit}${zero}`, role: "gridcell", text });
    if (unit === "share" && this.wholes[of]) {
      cell.style.setProperty("--mtprof-part", Math.max(value / this.#largest[of], 0).toFixed(4));
      cell.style.setProperty("--mtprof-heat", family?.colour ?? "var(--mtprof-accent)");
    }
    return cell;
  }

  /** @param {number} position */
  #choose(position) {
    this.#cursor = position;
    const id = this.#rows.id[this.#order[position]];
    this.options.onselect(id === this.#selected ? null : id, this.#order[position]);
    this.#draw();
  }

  /** @param {number} position */
  #reveal(position) {
    const head = this.head.offsetHeight;
    const top = position * ROW_PIXELS;
    const view = this.element.clientHeight - head;
    if (top < this.element.scrollTop) this.element.scrollTop = top;
    else if (top + ROW_PIXELS > this.element.scrollTop + view) this.element.scrollTop = top + ROW_PIXELS - view;
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    if (event.target !== this.element) return;
    const page = Math.max(Math.floor(this.element.clientHeight / ROW_PIXELS) - 2, 1);
    /** @type {Record<string, number>} */
    const moves = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity };
    if (event.key in moves) {
      this.#cursor = Math.min(Math.max(this.#cursor + moves[event.key], 0), Math.max(this.#order.length - 1, 0));
      this.#reveal(this.#cursor);
      this.#draw();
    } else if ((event.key === "Enter" || event.key === " ") && this.#order.length) this.#choose(this.#cursor);
    else if (event.key === "Escape" && this.#selected !== null) this.options.onselect(null, -1);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }
}

/**
 * The head of a column; a click on it sorts.
 * @param {{ key: string, title: string, unit: string, meaning: string }} column
 * @param {Sort} sort
 * @param {() => void} onsort
 */
function columnHead({ key, title, unit, meaning }, sort, onsort) {
  const is = key === sort.key;
  return h(
    "div",
    {
      class: `mtprof-cell mtprof-in-${unit}`,
      role: "columnheader",
      "aria-sort": is ? (sort.descending ? "descending" : "ascending") : "none",
      title: meaning,
      "data-key": key,
      onclick: onsort,
    },
    h("button", { type: "button", class: "mtprof-sort" }, title),
    h("span", { class: "mtprof-arrow", "aria-hidden": "true", text: is ? (sort.descending ? "▾" : "▴") : "" }),
  );
}

/**
 * @param {string} label
 * @param {string} fitted what there is room for
 * @param {string} detail
 * @param {string} shortDetail
 * @param {Family} [family]
 */
export function nameCell(label, fitted, detail, shortDetail, family) {
  const swatch =
    family && h("span", { class: "mtprof-swatch", style: `background:${family.colour}`, title: family.title });
  return h(
    "div",
    { class: "mtprof-cell mtprof-in-name", role: "gridcell", title: detail ? `${label}\n${detail}` : label },
    swatch,
    h("span", { class: "mtprof-label", text: fitted }),
    detail ? h("span", { class: "mtprof-detail", text: shortDetail }) : null,
  );
}
