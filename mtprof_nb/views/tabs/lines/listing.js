// The listing of source lines: a cursor, a selected line with its ops below it, and lines lit by a selection.

import { h, latest } from "../../web/dom.js";
import { ofRows } from "../../web/event_rows.js";
import { shortLocation } from "../../web/label.js";
import { searched } from "../../web/search.js";
import { fileRow, gapRow, headRow, isCost, lineColumns, lineRow, opEntry, ranked } from "./listing_rows.js";

/**
 * @import { LinesFirst, ListedFile, ListedLine } from "../../web/types/messages"
 * @import { Selection, TabContext } from "../../web/types/surroundings"
 * @import { CostLine, LineColumn } from "./listing_rows.js"
 */

let listings = 0;

export class Listing {
  /** @type {{ line: CostLine, element: HTMLElement }[]} lines that ran ops, in their order on the page */
  #rows = [];
  /** @type {{ line: ListedLine | CostLine, element: HTMLElement }[]} all lines, in the order of the source */
  #lines = [];
  /** @type {HTMLElement[]} all rows below the head, in the order of the source */
  #source;
  #cursor = 0;
  /** @type {HTMLElement | null} the ops below the open line */
  #opened = null;
  /** The position of the open line among the rows. */
  #openedAt = -1;
  #first;
  #wire;
  #store;
  #columns;
  #head;
  #prefix = `mtprof-listing-${++listings}`;
  #linesOf = latest((/** @type {Selection | null} */ selection) => this.#litBy(selection));

  /** @param {Omit<TabContext<LinesFirst>, "host">} context */
  constructor({ first, wire, store }) {
    this.#first = first;
    this.#wire = wire;
    this.#store = store;
    this.#columns = lineColumns(first);
    this.#head = headRow(this.#columns, (column) => this.rankBy(column));
    this.element = h("div", {
      class: "mtprof-listing",
      role: "grid",
      tabindex: "0",
      "aria-label": "Cost of source lines",
      style: `--mtprof-line-columns:${this.#columns.length}`,
      onkeydown: (event) => this.#key(event),
      onclick: (event) => this.#click(/** @type {Element} */ (event.target)),
    });
    const files = first.files.flatMap((file) => this.#file(file));
    const rest = first.rest.map((cost) => this.#line({ line: /** @type {const} */ (""), ...cost }, "mtprof-line-rest"));
    this.#source = [...files, ...rest];
    this.rankBy(null);
    this.seek();
  }

  /** Lists the lines by a column, the largest first; null lists them in the order of the source. @param {LineColumn | null} column */
  rankBy(column) {
    const lines = column ? ranked(this.#lines, column.rank) : this.#lines;
    this.#opened = null;
    this.#openedAt = -1;
    this.#cursor = 0;
    this.#rows = lines.flatMap(({ line, element }) => (isCost(line) ? [{ line, element }] : []));
    for (const [position, { element }] of this.#rows.entries()) {
      element.id = `${this.#prefix}-${position}`;
      element.dataset.row = String(position);
    }
    for (const head of this.#head.children) {
      const isSorted = column !== null && /** @type {HTMLElement} */ (head).dataset.title === column.title;
      if (isSorted) head.setAttribute("aria-sort", "descending");
      else head.removeAttribute("aria-sort");
    }
    this.element.classList.toggle("mtprof-ranked", column !== null);
    this.element.replaceChildren(this.#head, ...(column ? lines.map(({ element }) => element) : this.#source));
    this.element.scrollTop = 0;
    this.show(this.#store.selection);
  }

  /** Dims the lines whose source does not hold what is searched, and brings the first that does into view. */
  seek() {
    const { holds } = searched(this.#store.search);
    const isOn = this.#store.search.text !== "";
    for (const { line, element } of this.#lines)
      element.classList.toggle("mtprof-line-missed", isOn && !holds(line.text));
    const first = this.#rows.findIndex(({ line }) => holds(line.text));
    if (isOn && first >= 0) this.#move(first);
  }

  /** @param {ListedFile} file */
  #file(file) {
    const lines = file.lines.map((line) =>
      line === null ? gapRow() : this.#line(line, "", shortLocation(file.title)),
    );
    return [fileRow(file, this.#first.whole_ns), ...lines];
  }

  /** @param {ListedLine | CostLine} line */
  #line(line, kind = "", file = "") {
    const element = lineRow(line, this.#first, this.#columns, kind);
    /** @type {HTMLElement | null} */
    const text = element.querySelector(".mtprof-line-text");
    if (text && file) text.dataset.file = file;
    if (file) element.dataset.location = `${file}:${line.line}`;
    if (isCost(line)) element.setAttribute("aria-selected", "false");
    this.#lines.push({ line, element });
    return element;
  }

  /**
   * Shows what is selected: opens the selected line, or lights the lines that ran the selected ops; null closes.
   * @param {Selection | null} selection
   */
  async show(selection) {
    const id = selection?.grouping === "source" ? selection.row : null;
    const position = id === null ? -1 : this.#positionOf(id);
    for (const { element } of this.#lines) element.classList.remove("mtprof-line-lit");
    for (const [row, { element }] of this.#rows.entries()) {
      element.classList.toggle("mtprof-selected", row === position);
      element.setAttribute("aria-selected", String(row === position));
    }
    const lit = await this.#linesOf(id === null ? selection : null);
    // The ops of an open line stay open while one of them is selected.
    if (selection && id === null) this.#light(lit ?? []);
    else if (lit) await this.#open(position);
  }

  /** @param {number} id */
  #positionOf(id) {
    return this.#rows.findIndex(({ line }) => line.id === id);
  }

  /**
   * Ids of the lines that ran the selected ops. Without Python only the ops of the longest lines are known.
   * @param {Selection | null} selection
   */
  async #litBy(selection) {
    if (!selection) return [];
    const { chosen } = this.#store;
    const { grouping } = selection;
    const lines = this.#wire.live && (await this.#wire.once({ tab: "lines", ask: "lit", grouping }));
    if (lines) return [...ofRows(lines, chosen)];
    const ran = Object.entries(this.#first.ops).filter(([, ops]) =>
      ops.some((op) => "name" in op && op.name === selection.name),
    );
    return ran.map(([id]) => Number(id));
  }

  /** @param {number[]} ids */
  #light(ids) {
    const lit = this.#rows.filter(({ line }) => ids.includes(line.id));
    for (const { element } of lit) element.classList.add("mtprof-line-lit");
    if (!lit.length || lit.includes(this.#rows[this.#cursor])) return;
    const longest = lit.reduce((one, other) => (other.line.time_ns > one.line.time_ns ? other : one));
    this.#move(this.#rows.indexOf(longest));
  }

  /** Opens the ops of the line at a position; -1 closes. @param {number} position */
  async #open(position) {
    this.#opened?.remove();
    this.#opened = null;
    this.#openedAt = position;
    if (position < 0) return;
    this.#move(position);
    const { line, element } = this.#rows[position];
    const opened = h("div", { class: "mtprof-line-ops", role: "row" });
    this.#opened = opened;
    element.after(opened);
    const saved = this.#first.ops[line.id];
    const ops = saved ?? (await this.#wire.once({ tab: "lines", ask: "ops", id: line.id }))?.ops;
    const missing = h("div", { class: "mtprof-line-op", text: "Its ops were not saved." });
    const pick = (/** @type {number} */ event, /** @type {number} */ name) =>
      this.#store.emit("pick", { event, name, line: line.id });
    opened.append(h("div", { role: "gridcell" }, ...(ops?.map((op) => opEntry(op, pick)) ?? [missing])));
  }

  /** Brings the line of an event that was clicked in a chart into view. @param {number} id */
  point(id) {
    const position = this.#positionOf(id);
    if (position >= 0) this.#move(position);
  }

  /** Lights a line that ran no ops and brings it into view; false if it is not listed. @param {string} location */
  pointAt(location) {
    const listed = this.#lines.find(({ element }) => location !== "" && element.dataset.location === location);
    if (!listed) return false;
    for (const { element } of this.#lines) element.classList.toggle("mtprof-line-lit", element === listed.element);
    this.#reveal(listed.element);
    return true;
  }

  revealHottest() {
    const hot = this.element.querySelector(".mtprof-line-hot");
    const position = this.#rows.findIndex(({ element }) => element === hot);
    this.#move(Math.max(position, 0));
    // Lines after it say more than lines before it, such as a setup.
    const [list, row] = [this.element.getBoundingClientRect(), hot?.getBoundingClientRect()];
    if (row) this.element.scrollTop += row.top - list.top - list.height / 4;
  }

  /** @param {number} position */
  #move(position) {
    this.#rows[this.#cursor]?.element.classList.remove("mtprof-cursor");
    this.#cursor = position;
    const element = this.#rows[position]?.element;
    if (element) {
      element.classList.add("mtprof-cursor");
      this.element.setAttribute("aria-activedescendant", element.id);
    }
    this.reveal();
  }

  /** Scrolls the list, and nothing around it, so that the line of the cursor is in view. */
  reveal() {
    const element = this.#rows[this.#cursor]?.element;
    if (element) this.#reveal(element);
  }

  /** @param {HTMLElement} element */
  #reveal(element) {
    const [list, row] = [this.element.getBoundingClientRect(), element.getBoundingClientRect()];
    if (row.top >= list.top + this.#head.offsetHeight && row.bottom <= list.bottom) return;
    this.element.scrollTop += row.top - list.top - (list.height - row.height) / 2;
  }

  /** @param {Element} target */
  #click(target) {
    /** @type {HTMLElement | null} */
    const row = target.closest("[data-row]");
    if (row) this.#choose(Number(row.dataset.row));
  }

  /** @param {number} position */
  #choose(position) {
    if (position === this.#openedAt) return this.#store.select(null);
    const { id, location, text } = this.#rows[position].line;
    const selection = { grouping: "source", row: id, label: location || text, detail: text.trim(), name: -1 };
    return this.#store.select(selection);
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    if (event.target !== this.element) return;
    const last = this.#rows.length - 1;
    /** @type {Record<string, number>} */
    const targets = { ArrowDown: this.#cursor + 1, ArrowUp: this.#cursor - 1, Home: 0, End: last };
    const to = targets[event.key];
    if (to !== undefined) this.#move(Math.min(Math.max(to, 0), last));
    else if (event.key === "Enter" || event.key === " ") this.#choose(this.#cursor);
    else if (event.key === "Escape" && this.#store.selection) this.#store.select(null);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }
}
