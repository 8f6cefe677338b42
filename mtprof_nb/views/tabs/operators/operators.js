// The operators tab: filter, group, sort, select, copy.

import { h, latest, settled } from "../../web/dom.js";
import { shortLocation } from "../../web/label.js";
import { copyText, csv, markdown } from "../../web/tables/clipboard.js";
import { OperatorTools } from "./operator_tools.js";
import { rowFilter } from "../../web/tables/row_filter.js";
import { sorted } from "../../web/tables/row_order.js";
import { Table } from "../../web/tables/table.js";

/**
 * @import { OperatorRows, OperatorsFirst, OperatorsTable, Selected } from "../../web/types/messages"
 * @import { Selection, TabContext, TabView } from "../../web/types/surroundings"
 * @import { Picked } from "../../web/store.js"
 */

/** How long the table says that it was copied. */
const COPIED_MS = 2000;

/** @param {TabContext<OperatorsFirst>} context @returns {TabView} */
export const mount = (context) => new OperatorsView(context);

class OperatorsView {
  #wire;
  #store;
  #table;
  #tools;
  /**
   * The last rows from Python; `filtered` where it left out rows that do not match.
   * @type {OperatorsTable & { filtered?: boolean }}
   */
  #answer;
  /** @type {number[]} positions of the listed rows */
  #order = [];
  #limit;
  #ask = latest((/** @type {{ sort: string, descending?: boolean, filter?: string, regex?: boolean }} */ wanted) =>
    this.#wire.ask({ tab: "operators", ask: "rows", grouping: this.#tools.grouping.value, ...wanted }),
  );
  #askLit = latest((/** @type {{ grouping: string, selected: Selected | null }} */ wanted) =>
    this.#wire.ask({ tab: "operators", ask: "lit", ...wanted }),
  );
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
      onsort: () => this.#refresh(),
      onselect: (id, row) => store.select(id === null ? null : this.#selection(row)),
    });
    this.#table.sort = { key: first.sort, descending: first.descending };
    this.#tools = new OperatorTools(first.groupings, {
      onregroup: () => this.#regroup(),
      onall: () => this.#listAll(),
      oncopy: () => this.#copy(csv(this.#answer.columns, this.#answer.rows, this.#order)),
      onmarkdown: () => this.#copy(this.#markdown()),
    });
    host.append(this.#tools.element, h("div", { class: "mtprof-stage" }, this.#table.element));
    store.onpick((picked) => this.#pick(picked));
    store.onselect(() => {
      this.#table.select(this.#selectedRow());
      this.#light();
    });
    store.onseek(() => this.#refresh());
    wire.onchange(() => this.#followKernel());
    this.#refresh();
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
    return { grouping: this.#store.grouping, row: id[row], label: label[row], detail: detail[row], name: name[row] };
  }

  #selectedRow() {
    const { selection, grouping } = this.#store;
    return selection?.grouping === grouping ? selection.row : null;
  }

  /** Lights the rows of a selected line. Without Python nothing is known of them. */
  async #light() {
    const { selected, grouping } = this.#store;
    if (selected?.grouping !== "source" || this.#wire.silent) return this.#table.light([]);
    const answer = await this.#askLit({ grouping, selected });
    return answer && this.#table.light(answer.ids);
  }

  /** Lists the rows that are here; returns what is wrong with the filter, "" for nothing. */
  #list() {
    const { columns, rows, total, wholes } = this.#answer;
    const { matches, problem } = rowFilter(rows, this.#store.search);
    this.#table.fill(columns, rows, wholes);
    const matching = sorted(this.#table, rows, this.#table.sort).filter(matches);
    this.#order = matching.slice(0, this.#limit);
    this.#tools.report(this.#order.length, matching.length, total, problem);
    this.#table.show(this.#order, `No name holds “${this.#store.search.text}”.`);
    this.#table.select(this.#selectedRow(), false);
    return problem;
  }

  #listAll() {
    this.#limit = Infinity;
    this.#list();
  }

  async #refresh() {
    const problem = this.#list();
    const { total, rows, filtered } = this.#answer;
    if (problem || (total <= rows.id.length && !filtered)) return;
    // Python has rows that are not here: it sorts and filters all of them.
    const { text: filter, regex } = this.#store.search;
    const { key: sort, descending } = this.#table.sort;
    const answer = await this.#ask({ sort, descending, filter, regex });
    if (answer) this.#take(answer, filter !== "");
  }

  /** @param {OperatorsTable} answer */
  #take(answer, filtered = false) {
    this.#answer = { ...this.#answer, ...answer, filtered };
    this.#store.grouping = answer.grouping;
    this.#list();
    this.#light();
  }

  async #regroup() {
    this.#store.select(null);
    const answer = await this.#ask({ sort: "self_ns" });
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
    const known = this.#answer.rows.name.indexOf(name);
    const row = this.#wire.live && event >= 0 ? await this.#rowOf(event) : known;
    if (row < 0) return;
    // A row that was picked in a chart is listed too.
    if (!this.#order.includes(row)) this.#listAll();
    this.#store.select(this.#selection(row), event);
  }

  /** @param {number} event */
  async #rowOf(event) {
    const answer = await this.#wire.ask({ tab: "operators", ask: "row_of", event, grouping: this.#store.grouping });
    if (answer.row < 0) return -1;
    const row = this.#answer.rows.id.indexOf(answer.row);
    return row < 0 ? this.#append(answer.rows) : row;
  }

  /** @param {OperatorRows} added */
  #append(added) {
    const { rows } = this.#answer;
    for (const key of /** @type {const} */ (["id", "family", "name"])) rows[key].push(...added[key]);
    for (const key of /** @type {const} */ (["label", "detail"])) rows[key].push(...added[key]);
    for (const key of Object.keys(rows.value)) rows.value[key].push(...added.value[key]);
    this.#list();
    return rows.id.length - 1;
  }

  #followKernel() {
    const { grouping } = this.#tools;
    grouping.disabled = this.#wire.silent;
    if (this.#wire.silent) grouping.value = this.#store.grouping;
  }
}
