// A table of any length: only the visible rows are elements. Sorts by number, selects with mouse and keyboard.

import { h } from "./dom.js";
import { share, writers } from "./format.js";
import { fittedMiddle } from "./label.js";

const ROW_PIXELS = 24;
const SPARE_ROWS = 6;
const NAME_PIXELS = 190;
/** What stands beside a name in its cell: room at both ends, and the colour of its family. */
const NAME_INSET = 41;
const WIDTHS = { count: 72, time: 82, share: 96, bytes: 88, flops: 98, held: 92 };
let tables = 0;

/**
 * @import { Column, Family, Rows } from "./types/messages"
 * @typedef {{ key: string, descending: boolean }} Sort
 * @typedef {object} TableOptions
 * @property {string} label
 * @property {string} nameTitle
 * @property {Family[]} [families]
 * @property {(key: string) => void} [onsort]
 * @property {(id: number | null, row: number) => void} [onselect] with -1 where nothing is selected any more
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
  #largest = 1;
  #sentence = "";
  /**
   * A name as it fits into its column at present.
   * @param {string} text
   */
  #fit = (text) => text;
  #observer = new ResizeObserver(() => this.#draw());
  #prefix = `mtprof-table-${++tables}`;

  /** @param {TableOptions} options */
  constructor(options) {
    this.options = options;
    /** @type {Sort} */
    this.sort = { key: "", descending: true };
    /** What shares are shares of. */
    this.whole = 0;
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
      const row = /** @type {Element} */ (event.target).closest("[data-place]");
      if (row) this.#choose(Number(row.dataset.place));
    });
    this.#observer.observe(this.element);
  }

  destroy() {
    this.#observer.disconnect();
  }

  /** @param {Column[]} columns @param {Rows} rows @param {number} whole what shares are shares of */
  fill(columns, rows, whole = 0) {
    this.#columns = columns;
    this.#rows = rows;
    this.whole = whole;
    this.#lay(
      "wide",
      columns.map((column) => WIDTHS[column.unit]),
    );
    this.#lay(
      "narrow",
      columns.map((column) => Math.round(WIDTHS[column.unit] * 0.86)),
    );
    this.#largest = Math.max(...(rows.value.self_ns ?? []).map((ns) => ns ?? 0), 1);
    this.#drawHead();
  }

  /**
   * Widths of the columns, for a wide place and for a narrow one; the style sheet takes the one that fits.
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
   * The places of the rows to show, in their order; where there are none, `sentence` says why.
   * @param {number[]} order
   */
  show(order, sentence = "") {
    this.#order = order;
    this.#sentence = sentence;
    this.#cursor = Math.min(this.#cursor, Math.max(order.length - 1, 0));
    this.body.style.height = `${order.length * ROW_PIXELS}px`;
    this.element.setAttribute("aria-rowcount", String(order.length + 1));
    this.#draw();
  }

  /**
   * Marks the row with this id, and brings it into view.
   * @param {number | null} id
   */
  select(id, reveal = true) {
    this.#selected = id;
    const place = this.#order.findIndex((row) => this.#rows.id[row] === id);
    if (place >= 0) {
      this.#cursor = place;
      if (reveal) this.#reveal(place);
    }
    this.#draw();
  }

  /**
   * The number that a column is sorted by.
   * @param {string} column
   * @param {number} row
   */
  number(column, row) {
    const value = this.#rows.value[column === "share" ? "self_ns" : column]?.[row];
    return value === null ? Infinity : (value ?? 0);
  }

  /**
   * What a cell says.
   * @param {Column} column
   * @param {number} row
   */
  text(column, row) {
    if (column.unit === "share") return share(this.number("share", row), this.whole);
    return writers[column.unit](this.number(column.key, row));
  }

  #drawHead() {
    const columns = [
      { key: "label", title: this.options.nameTitle, unit: "name", meaning: "by name" },
      ...this.#columns,
    ];
    this.head.replaceChildren(
      ...columns.map((column) => {
        const sorted = column.key === this.sort.key;
        const order = sorted ? (this.sort.descending ? "descending" : "ascending") : "none";
        const arrow = sorted ? (this.sort.descending ? "▾" : "▴") : "";
        return h(
          "div",
          {
            class: `mtprof-cell mtprof-in-${column.unit}`,
            role: "columnheader",
            "aria-sort": order,
            title: column.meaning,
            "data-key": column.key,
            onclick: () => this.options.onsort?.(column.key),
          },
          h(
            "button",
            { type: "button", class: "mtprof-sort", tabindex: this.options.onsort ? "0" : "-1" },
            column.title,
          ),
          h("span", { class: "mtprof-arrow", "aria-hidden": "true", text: arrow }),
        );
      }),
    );
  }

  #draw() {
    const height = this.element.clientHeight || 300;
    const first = Math.max(Math.floor(this.element.scrollTop / ROW_PIXELS) - SPARE_ROWS, 0);
    const last = Math.min(first + Math.ceil(height / ROW_PIXELS) + 2 * SPARE_ROWS, this.#order.length);
    const style = getComputedStyle(this.element);
    const nameHead = /** @type {HTMLElement | null} */ (this.head.firstElementChild);
    const room = (nameHead?.offsetWidth ?? 0) - NAME_INSET;
    this.#fit = (text) => (room > 0 ? fittedMiddle(text, room, `${style.fontSize} ${style.fontFamily}`) : text);
    const rows = [];
    for (let place = first; place < last; place++) rows.push(this.#row(place));
    if (!rows.length && this.#sentence) rows.push(h("div", { class: "mtprof-no-rows", text: this.#sentence }));
    this.body.replaceChildren(...rows);
    const current = this.#order.length ? `${this.#prefix}-${this.#cursor}` : null;
    if (current) this.element.setAttribute("aria-activedescendant", current);
  }

  /** @param {number} place */
  #row(place) {
    const row = this.#order[place];
    const selected = this.#rows.id[row] === this.#selected;
    const [label, detail] = [this.#rows.label[row], this.#rows.detail[row]];
    const family = this.options.families?.[this.#rows.family?.[row] ?? -1];
    const name = h(
      "div",
      { class: "mtprof-cell mtprof-in-name", role: "gridcell", title: detail ? `${label}\n${detail}` : label },
      family ? h("span", { class: "mtprof-swatch", style: `background:${family.colour}`, title: family.title }) : null,
      h("span", { class: "mtprof-label", text: this.#fit(label) }),
      detail ? h("span", { class: "mtprof-detail", text: detail }) : null,
    );
    const cells = this.#columns.map((column) => {
      const nothing = this.number(column.key, row) === 0 ? " mtprof-nothing" : "";
      const cell = h("div", {
        class: `mtprof-cell mtprof-in-${column.unit}${nothing}`,
        role: "gridcell",
        text: this.text(column, row),
      });
      if (column.unit === "share" && this.whole) {
        const part = Math.max(this.number("share", row) / this.#largest, 0);
        cell.style.setProperty("--mtprof-part", part.toFixed(4));
        cell.style.setProperty("--mtprof-heat", family?.colour ?? "var(--mtprof-accent)");
      }
      return cell;
    });
    return h(
      "div",
      {
        class: `mtprof-row${selected ? " mtprof-selected" : ""}${place === this.#cursor ? " mtprof-cursor" : ""}`,
        id: `${this.#prefix}-${place}`,
        role: "row",
        "aria-rowindex": String(place + 2),
        "aria-selected": String(selected),
        "data-place": String(place),
        style: `top:${place * ROW_PIXELS}px`,
      },
      name,
      ...cells,
    );
  }

  /** @param {number} place */
  #choose(place) {
    this.#cursor = place;
    const id = this.#rows.id[this.#order[place]];
    this.options.onselect?.(id === this.#selected ? null : id, this.#order[place]);
    this.#draw();
  }

  /** @param {number} place */
  #reveal(place) {
    const head = this.head.offsetHeight;
    const top = place * ROW_PIXELS;
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
    else if (event.key === "Escape" && this.#selected !== null) this.options.onselect?.(null, -1);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }
}

/** @param {number} one @param {number} other */
const difference = (one, other) => (one === other ? 0 : one - other);

/**
 * Places of rows by one column; ties by name.
 * @param {{ number(column: string, row: number): number }} table
 * @param {Rows} rows
 * @param {Sort} sort
 */
export function sorted(table, rows, { key, descending }) {
  const turn = descending ? -1 : 1;
  /** @param {number} one @param {number} other */
  const named = (one, other) =>
    rows.label[one] < rows.label[other] ? -1 : rows.label[one] > rows.label[other] ? 1 : 0;
  const order = rows.label.map((_, row) => row);
  if (key === "label") return order.sort((one, other) => turn * named(one, other));
  return order.sort(
    (one, other) => turn * difference(table.number(key, one), table.number(key, other)) || named(one, other),
  );
}
