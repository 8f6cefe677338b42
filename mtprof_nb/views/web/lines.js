// The lines tab: source text, and on each line a bar with what it cost forward, backward and in the optimizer.

import { h } from "./dom.js";
import { duration, nbytes, number, share } from "./format.js";
import { phaseClass } from "./strip.js";

/**
 * @import { CostOfOps, LinesFirst, ListedFile, ListedLine, OpOfLine, Times } from "./types/messages"
 * @import { Selection, TabContext, TabView } from "./types/surroundings"
 * @typedef {CostOfOps & { line: number | "" }} CostLine a line that ran ops, or what belongs to no line
 * @typedef {Times & Partial<CostOfOps>} Cost
 * @typedef {{ title: string, text: (cost: Cost) => string, meaning?: string }} LineColumn
 */

let listings = 0;

/** @param {TabContext<LinesFirst>} context @returns {TabView} */
export function mount({ host, first, wire, store }) {
  const listing = new Listing({ first, wire, store });
  const keys = [...first.phases, ...(first.outside === null ? [] : [first.outside])].map((phase) =>
    h("span", { class: "mtprof-phase-key" }, h("span", { class: `mtprof-phase-swatch ${phaseClass(phase)}` }), phase),
  );
  const hottest = h("button", {
    type: "button",
    class: "mtprof-button",
    text: "Hottest line",
    title: "Bring the line that took longest into view",
    onclick: () => listing.revealHottest(),
  });
  const tools = h(
    "div",
    { class: "mtprof-tools" },
    hottest,
    h("div", { class: "mtprof-line-keys", "aria-label": "Phases" }, ...keys),
  );
  tools.append(
    h("span", { class: "mtprof-count", text: ["Click a line for its ops", first.hint].filter(Boolean).join("; ") }),
  );
  host.append(tools);
  if (first.note) host.append(h("div", { class: "mtprof-line-note", role: "note", text: first.note }));
  host.append(h("div", { class: "mtprof-stage" }, listing.element));

  store.onselect((selection) => listing.mark(selection));
  store.onpick(async ({ event }) => {
    if (!wire.live || event < 0) return;
    const { id } = await wire.ask({ tab: "lines", ask: "line_of", event });
    listing.point(id);
  });
  // The tab has its height only once it is on the page.
  requestAnimationFrame(() => (store.selection ? listing.mark(store.selection) : listing.revealHottest()));
  return { shown: () => listing.reveal() };
}

class Listing {
  /**
   * Rows with a cost, in their order on the page.
   * @type {{ line: CostLine, element: HTMLElement }[]}
   */
  #rows = [];
  #cursor = 0;
  /**
   * The list of ops that is open, and the place of its line.
   * @type {HTMLElement | null}
   */
  #opened = null;
  #openedAt = -1;
  #titles;
  #prefix = `mtprof-listing-${++listings}`;
  #asked = 0;

  /** @param {Omit<TabContext<LinesFirst>, "host">} context */
  constructor({ first, wire, store }) {
    this.first = first;
    this.wire = wire;
    this.store = store;
    /** @type {LineColumn} */
    const outside = {
      title: "Outside",
      text: (cost) => (cost.outside_ns ? duration(cost.outside_ns) : "–"),
      meaning: "time on the line while no op ran: Python code, waiting, input",
    };
    /** @type {LineColumn[]} */
    this.columns = [
      first.outside !== null
        ? {
            title: "Time",
            text: (cost) => duration(cost.time_ns),
            meaning: "its own ops, with what they cost backward, and the time outside ops",
          }
        : {
            title: "Self",
            text: (cost) => duration(cost.time_ns),
            meaning: "its own ops, with what they cost backward",
          },
      { title: "Share", text: (cost) => share(cost.time_ns, first.whole_ns), meaning: "of all lines" },
      ...(first.outside === null ? [] : [outside]),
      { title: "Total", text: (cost) => duration(cost.total_ns), meaning: "with everything that the line called" },
      { title: "Ops", text: (cost) => (cost.count === undefined ? "–" : number(cost.count)) },
    ];
    if (first.has_device)
      this.columns.push({
        title: "Device",
        text: (cost) => (cost.id === undefined ? "–" : duration(cost.device_ns ?? 0)),
      });
    if (first.memory)
      this.columns.push({
        ...first.memory,
        text: (cost) => (typeof cost.bytes === "number" ? nbytes(cost.bytes) : "–"),
      });
    this.element = h("div", {
      class: "mtprof-listing",
      role: "grid",
      tabindex: "0",
      "aria-label": "Cost of source lines",
      style: `--mtprof-line-columns:${this.columns.length}`,
      onkeydown: (event) => this.#key(event),
    });
    this.#titles = this.#head();
    this.element.append(this.#titles, ...first.files.flatMap((file) => this.#file(file)));
    for (const cost of first.rest)
      this.element.append(this.#line({ line: /** @type {const} */ (""), ...cost }, "mtprof-line-rest"));
    this.element.addEventListener("click", (event) => {
      /** @type {HTMLElement | null} */
      const row = /** @type {Element} */ (event.target).closest("[data-row]");
      if (row) this.#choose(Number(row.dataset.row));
    });
  }

  #head() {
    const titles = this.columns.map(({ title, meaning }) =>
      h("div", { class: "mtprof-line-number", role: "columnheader", text: title, title: meaning ?? null }),
    );
    const names = [
      h("div", { role: "columnheader", class: "mtprof-line-at", text: "Line" }),
      h("div", { role: "columnheader", class: "mtprof-line-text", text: "Source" }),
    ];
    return h(
      "div",
      { class: "mtprof-line mtprof-line-head", role: "row" },
      ...names,
      h("div", { role: "columnheader" }),
      ...titles,
    );
  }

  /** @param {ListedFile} file */
  #file(file) {
    const title = h(
      "div",
      { class: "mtprof-line-file", role: "row" },
      h("span", { role: "gridcell" }, h("b", { text: file.title }), this.#spent(file)),
    );
    return [
      title,
      ...file.lines.map((line) =>
        line === null ? h("div", { class: "mtprof-line-gap", text: "⋯" }) : this.#line(line),
      ),
    ];
  }

  /** @param {ListedFile} file */
  #spent({ self_ns, outside_ns }) {
    const shared = share(self_ns + outside_ns, this.first.whole_ns);
    return outside_ns
      ? ` ${duration(self_ns)} in ops, ${duration(outside_ns)} outside, ${shared}`
      : ` ${duration(self_ns)}, ${shared}`;
  }

  /** @param {ListedLine | CostLine} line */
  #line(line, kind = "") {
    const at = h("div", { class: "mtprof-line-at", role: "gridcell", text: String(line.line) });
    const text = h("div", { class: "mtprof-line-text", role: "gridcell", text: line.text, title: line.text.trim() });
    if (line.id === undefined && !line.time_ns && !line.total_ns)
      return h("div", { class: "mtprof-line mtprof-line-free", role: "row" }, at, text);
    const cost = /** @type {Cost} */ (line);
    const numbers = this.columns.map((column) =>
      h("div", { class: "mtprof-line-number", role: "gridcell", text: column.text(cost) }),
    );
    const hot = cost.id !== -1 && cost.time_ns === this.first.largest_ns ? " mtprof-line-hot" : "";
    const busy = cost.time_ns >= this.first.whole_ns / 100 ? " mtprof-line-busy" : "";
    if (line.id === undefined)
      return h(
        "div",
        { class: `mtprof-line mtprof-line-free${busy}${hot}`, role: "row" },
        at,
        text,
        this.#bar(cost),
        ...numbers,
      );
    const row = this.#rows.length;
    const element = h(
      "div",
      {
        class: `mtprof-line mtprof-line-cost${hot} ${kind}`,
        role: "row",
        id: `${this.#prefix}-${row}`,
        "data-row": String(row),
        "aria-selected": "false",
      },
      at,
      text,
      this.#bar(line),
      ...numbers,
    );
    this.#rows.push({ line, element });
    return element;
  }

  /** @param {Cost} line */
  #bar(line) {
    const { outside } = this.first;
    const times = Object.entries({ ...line.phases, ...(outside === null ? {} : { [outside]: line.outside_ns ?? 0 }) });
    const spent = times.filter(([, ns]) => ns > 0);
    const spoken = spent.map(([phase, ns]) => `${phase} ${duration(ns)}`).join(", ");
    const parts = spent.map(([phase, ns]) =>
      h("div", { class: `mtprof-phase ${phaseClass(phase)}`, style: `flex-grow:${ns}` }),
    );
    const width = Math.min(line.time_ns / Math.max(this.first.largest_ns, 1), 1) * 100;
    const bar = h("div", { class: "mtprof-line-bar", style: `width:${width.toFixed(2)}%` }, ...parts);
    return h(
      "div",
      { class: "mtprof-line-bars", role: "gridcell", title: spoken, "aria-label": spoken || "nothing of its own" },
      bar,
    );
  }

  /**
   * Marks what is selected: a line, which then shows its ops, or the lines that ran an op; null closes and unmarks.
   * @param {Selection | null} selection
   */
  async mark(selection) {
    const number = ++this.#asked;
    const id = selection?.grouping === "source" ? selection.row : null;
    const place = id === null ? -1 : this.#rows.findIndex(({ line }) => line.id === id);
    for (const [row, { element }] of this.#rows.entries()) {
      element.classList.remove("mtprof-line-lit");
      element.classList.toggle("mtprof-selected", row === place);
      element.setAttribute("aria-selected", String(row === place));
    }
    // The ops of an open line stay while one of them is looked at.
    if (selection && id === null) return this.#light(await this.#linesOf(selection), number);
    return this.#open(place);
  }

  /**
   * The lines that ran what is selected. Without Python only the dearest lines' ops are known.
   * @param {Selection} selection
   */
  async #linesOf(selection) {
    if (this.wire.live) return (await this.wire.ask({ tab: "lines", ask: "lit", selected: this.store.selected })).ids;
    const ran = Object.entries(this.first.ops).filter(([, ops]) =>
      ops.some((op) => "name" in op && op.name === selection.name),
    );
    return ran.map(([id]) => Number(id));
  }

  /** @param {number[]} ids @param {number} number of the question that they answer */
  #light(ids, number) {
    if (number !== this.#asked) return;
    const wanted = new Set(ids);
    const lit = this.#rows.filter(({ line }) => wanted.has(line.id));
    for (const { element } of lit) element.classList.add("mtprof-line-lit");
    if (!lit.length || lit.includes(this.#rows[this.#cursor])) return;
    const dearest = lit.reduce((one, other) => (other.line.time_ns > one.line.time_ns ? other : one));
    this.#move(this.#rows.indexOf(dearest));
  }

  /** @param {number} place */
  async #open(place) {
    this.#opened?.remove();
    this.#opened = null;
    this.#openedAt = place;
    if (place < 0) return;
    this.#move(place);
    const { id } = this.#rows[place].line;
    const opened = h("div", { class: "mtprof-line-ops", role: "row" });
    this.#opened = opened;
    this.#rows[place].element.after(opened);
    if (!this.first.ops[id] && this.wire.silent)
      opened.append(h("div", { class: "mtprof-line-op", role: "gridcell", text: "Its ops were not saved." }));
    const ops = this.first.ops[id] ?? (await this.wire.ask({ tab: "lines", ask: "ops", id })).ops;
    opened.append(h("div", { role: "gridcell" }, ...ops.map((op) => this.#op(op))));
  }

  /** @param {OpOfLine} op */
  #op(op) {
    if ("parameter" in op)
      return h(
        "div",
        { class: "mtprof-line-op" },
        "parameter ",
        h("span", { class: "mtprof-line-op-name", text: op.parameter }),
        ` ${number(op.count)} ×, ${duration(op.self_ns)}`,
      );
    if ("more" in op) return h("div", { class: "mtprof-line-op", text: `and ${number(op.more)} more` });
    return h(
      "button",
      {
        type: "button",
        class: "mtprof-line-op",
        title: "Find this op in the other tabs",
        onclick: () => this.store.pick(op.event, op.name),
      },
      h("span", { class: `mtprof-phase-swatch mtprof-phase-${op.phase}`, title: op.phase }),
      h("span", { class: "mtprof-line-op-name", text: op.label }),
      ` ${op.phase}, ${number(op.count)} ×, ${duration(op.self_ns)}`,
    );
  }

  /**
   * Brings the line of an event that was clicked in a chart into view.
   * @param {number} id
   */
  point(id) {
    const place = this.#rows.findIndex(({ line }) => line.id === id);
    if (place >= 0) this.#move(place);
  }

  revealHottest() {
    const hot = this.element.querySelector(".mtprof-line-hot");
    this.#move(
      Math.max(
        this.#rows.findIndex(({ element }) => element === hot),
        0,
      ),
    );
    // What comes after it says more than what stands before it, such as a setup.
    const [list, row] = [this.element.getBoundingClientRect(), hot?.getBoundingClientRect()];
    if (row) this.element.scrollTop += row.top - list.top - list.height / 4;
  }

  /** @param {number} place */
  #move(place) {
    this.#rows[this.#cursor]?.element.classList.remove("mtprof-cursor");
    this.#cursor = place;
    const element = this.#rows[place]?.element;
    if (element) {
      element.classList.add("mtprof-cursor");
      this.element.setAttribute("aria-activedescendant", element.id);
    }
    this.reveal();
  }

  /** Scrolls the list, and nothing around it, so that the present line stands in view. */
  reveal() {
    const element = this.#rows[this.#cursor]?.element;
    if (!element) return;
    const [list, row] = [this.element.getBoundingClientRect(), element.getBoundingClientRect()];
    const head = this.#titles.offsetHeight;
    if (row.top >= list.top + head && row.bottom <= list.bottom) return;
    this.element.scrollTop += row.top - list.top - (list.height - row.height) / 2;
  }

  /** @param {number} place */
  #choose(place) {
    const { line } = this.#rows[place];
    if (place === this.#openedAt) this.store.select(null);
    else {
      this.store.select({
        grouping: "source",
        row: line.id,
        label: line.location || line.text,
        detail: line.text.trim(),
        name: -1,
      });
    }
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
    else if (event.key === "Escape" && this.store.selection) this.store.select(null);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }
}
