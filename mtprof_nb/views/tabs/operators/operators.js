// The operators tab: filter, group, sort, select, copy.

import { button, choiceBy, h, latest, settled, word } from "../../web/dom.js";
import { rowOf, rowsOf, withSubmodules } from "../../web/event_rows.js";
import { number } from "../../web/format.js";
import { shortLocation } from "../../web/label.js";
import { copyText, csv, markdown } from "../../web/tables/clipboard.js";
import { rowFilter } from "../../web/tables/row_filter.js";
import { sorted } from "../../web/tables/row_order.js";
import { Table } from "../../web/tables/table.js";

/**
 * @import { OperatorsFirst, OperatorsTable } from "../../web/types/messages"
 * @import { Selection, TabContext, TabView } from "../../web/types/surroundings"
 * @import { Picked } from "../../web/store.js"
 * @typedef {Record<"onregroup" | "onall" | "oncopy" | "onmarkdown", () => void>} ToolListeners
 */

/** How long the table shows that it was copied. */
const COPIED_MS = 2000;

/** @param {TabContext<OperatorsFirst>} context @returns {TabView} */
export const mount = (context) => new OperatorsView(context);

class OperatorsView {
  #wire;
  #store;
  #table;
  #tools;
  /** @type {OperatorsTable} the last rows from Python */
  #answer;
  /** @type {number[]} positions of the listed rows */
  #order = [];
  #limit;
  #rowsBy = latest((/** @type {string} */ grouping) => this.#wire.once({ tab: "operators", ask: "rows", grouping }));
  #linesOf = latest((/** @type {string} */ grouping) => this.#wire.once({ tab: "operators", ask: "lit", grouping }));
  #endCopied = settled(() => {
    this.#tools.copied(null);
    this.#list();
  }, COPIED_MS);

  /** @param {TabContext<OperatorsFirst>} context */
  constructor({ host, first, wire, store }) {
    this.#wire = wire;
    this.#store = store;
    this.#answer = first;
    this.#limit = first.limit ?? Infinity;
    store.grouping = first.grouping;
    this.#table = new Table({
      label: "Operators",
      nameTitle: "Name",
      families: first.families,
      detailOf: (detail) => (store.grouping === "line" ? shortLocation(detail) : detail),
      onsort: () => this.#list(),
      onselect: (id, row) => store.select(id === null ? null : this.#selection(row)),
    });
    this.#table.sort = { key: first.sort, descending: true };
    this.#tools = new OperatorTools(first.groupings, {
      onregroup: () => this.#regroup(),
      onall: () => this.#listAll(),
      oncopy: () => this.#copy(csv(this.#answer.columns, this.#answer.rows, this.#order)),
      onmarkdown: () => this.#copy(this.#markdown()),
    });
    host.append(this.#tools.element, h("div", { class: "mtprof-stage" }, this.#table.element));
    store.on("pick", (picked) => this.#pick(picked));
    store.on("select", () => {
      this.#table.select(this.#selectedRow());
      this.#light();
    });
    store.on("seek", () => this.#list());
    wire.onchange(() => this.#followKernel());
    this.#list();
    this.#complete();
  }

  /** @param {boolean} isOn */
  print(isOn) {
    this.#table.print(isOn);
  }

  destroy() {
    this.#table.destroy();
  }

  /** @param {number} row @returns {Selection} */
  #selection(row) {
    const { id, label, detail, name } = this.#answer.rows;
    const { grouping } = this.#store;
    const rows = grouping === "module" ? withSubmodules(this.#answer.rows, row) : [id[row]];
    return { grouping, row: id[row], rows, label: label[row], detail: detail[row], name: name[row] };
  }

  #selectedRow() {
    const { selection, grouping } = this.#store;
    return selection?.grouping === grouping ? selection.row : null;
  }

  /** Lights the rows of a selected line. Without Python nothing is known of them. */
  async #light() {
    const { selected, grouping } = this.#store;
    this.#table.light([]);
    const lines = selected?.grouping === "source" && (await this.#linesOf(grouping));
    if (selected && lines) this.#table.light(rowsOf(lines, selected.row));
  }

  #list() {
    const { columns, rows, total, wholes } = this.#answer;
    const { matches, problem } = rowFilter(rows, this.#store.search);
    this.#table.fill(columns, rows, wholes);
    const matching = sorted(this.#table, rows, this.#table.sort).filter(matches);
    this.#order = matching.slice(0, this.#limit);
    this.#tools.report(this.#order.length, matching.length, total, problem);
    this.#table.show(this.#order, `No name holds “${this.#store.search.text}”.`);
    this.#table.select(this.#selectedRow(), false);
  }

  #listAll() {
    this.#limit = Infinity;
    this.#list();
  }

  /** Gets the rows that were not saved with the notebook. */
  async #complete() {
    const { total, rows, grouping } = this.#answer;
    const answer = total > rows.id.length ? await this.#rowsBy(grouping) : null;
    if (answer) this.#take(answer);
  }

  /** @param {OperatorsTable} answer */
  #take(answer) {
    this.#answer = answer;
    this.#store.grouping = answer.grouping;
    this.#list();
    this.#light();
  }

  async #regroup() {
    this.#store.select(null);
    const answer = await this.#rowsBy(this.#tools.grouping.value);
    if (!answer) return;
    this.#table.sort = { key: answer.sort, descending: true };
    this.#take(answer);
  }

  #markdown() {
    const { columns, rows, wholes } = this.#answer;
    return markdown(columns, rows, this.#order, wholes);
  }

  /** @param {string} text */
  async #copy(text) {
    await copyText(text);
    this.#tools.copied(this.#order.length);
    this.#endCopied();
  }

  /** A click in a chart names an event: selects its row under the present grouping. @param {Picked} picked */
  async #pick({ event, name }) {
    const id = this.#wire.live && event >= 0 ? await this.#rowOf(event) : null;
    const { rows } = this.#answer;
    const row = id === null ? rows.name.indexOf(name) : rows.id.indexOf(id);
    if (row < 0) return;
    // A row that was picked in a chart is listed too.
    if (!this.#order.includes(row)) this.#listAll();
    this.#store.select(this.#selection(row), event);
  }

  /** The id of the row of an event, -1 for none; null where it is not known. @param {number} event */
  async #rowOf(event) {
    const { grouping } = this.#store;
    const rows = await this.#wire.once({ tab: "operators", ask: "events", grouping });
    if (rows) return rowOf(rows, event);
    return (await this.#wire.ask({ tab: "operators", ask: "row_of", grouping, event }))?.row ?? null;
  }

  #followKernel() {
    const { grouping } = this.#tools;
    grouping.disabled = this.#wire.silent;
    if (this.#wire.silent) grouping.value = this.#store.grouping;
  }
}

/** The controls above the table: grouping, number of rows, copy. */
class OperatorTools {
  #count = h("span", { class: "mtprof-count", role: "status" });
  #copies;
  #all;

  /** @param {OperatorsFirst["groupings"]} groupings @param {ToolListeners} listeners */
  constructor(groupings, { onregroup, onall, oncopy, onmarkdown }) {
    const { select, field } = choiceBy("Group by", groupings, onregroup);
    this.grouping = select;
    this.#all = button({ text: "All rows", hidden: true, onclick: onall });
    this.#copies = [
      button({ title: "Copy the listed rows as CSV", onclick: oncopy }, word("Copy "), "CSV"),
      button({ title: "Copy the listed rows as Markdown", "aria-label": "Markdown", onclick: onmarkdown }, "MD"),
    ];
    const tools = [field, this.#count, this.#all, ...this.#copies];
    this.element = h("div", { class: "mtprof-tools" }, ...tools);
  }

  /**
   * Says how many rows are listed, of how many that match and of how many there are; or what is wrong with the filter.
   * @param {number} listed
   * @param {number} matching
   * @param {number} total
   * @param {string} problem
   */
  report(listed, matching, total, problem) {
    this.#all.hidden = listed === matching;
    this.#count.classList.toggle("mtprof-bad", problem !== "");
    if (problem) this.#count.replaceChildren(`not a regular expression: ${problem}`);
    else this.#count.replaceChildren(word("showing "), `${number(listed)} of ${number(total)}`);
    this.#count.title = this.#count.textContent;
  }

  /** Says that so many rows were copied; null ends it. @param {number | null} count */
  copied(count) {
    for (const copy of this.#copies) copy.classList.toggle("mtprof-done", count !== null);
    if (count !== null) this.#count.replaceChildren(`copied ${number(count)} rows`);
  }
}
