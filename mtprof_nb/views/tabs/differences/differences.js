// The tab of differences: the measured times, the certain changes, and a table of all rows that sorts.

import { button, choiceBy, h, legend } from "../../web/dom.js";
import { number } from "../../web/format.js";
import { plainName } from "../../web/label.js";
import { sorted } from "../../web/tables/row_order.js";
import { Table } from "../../web/tables/table.js";
import { Dots, SIDES } from "./dots.js";

/**
 * @import { DifferencesFirst } from "./comparison_types"
 * @import { TabContext, TabView } from "../../web/types/surroundings"
 */

/** @param {TabContext<DifferencesFirst>} context @returns {TabView} */
export const mount = (context) => new DifferencesView(context);

class DifferencesView {
  #first;
  #table;
  #dots;
  /** The kind of rows that is listed, "" for all. */
  #level = "";
  #count = h("span", { class: "mtprof-count", role: "status" });
  #why = h("div", { class: "mtprof-why", role: "status" });
  #small = button({ "aria-pressed": "false", onclick: () => this.#toggleSmall() });

  /** @param {TabContext<DifferencesFirst>} context */
  constructor({ host, first }) {
    this.#first = first;
    this.#dots = new Dots(host, first.points, first.labels);
    this.#table = new Table({
      label: "Differences",
      nameTitle: "Name",
      families: first.levels,
      nameOf: (label, row) => (first.levels[first.rows.family[row]].title === "kernel" ? plainName(label) : label),
      onsort: () => this.#list(),
      onselect: (id, row) => this.#select(id, row),
    });
    this.#table.sort = { key: "", descending: true };
    const noise = h("div", { class: "mtprof-noise" }, ...this.#legend(), this.#dots.element);
    const above = h("div", { class: "mtprof-above" }, noise, changeList(first));
    const reasons = first.explanation.map((text) => h("div", { text }));
    host.append(
      h("div", { class: "mtprof-reasons" }, ...reasons),
      above,
      this.#tools(),
      h("div", { class: "mtprof-stage" }, this.#table.element),
      this.#why,
    );
    this.#list();
  }

  restyle() {
    this.#dots.draw();
  }

  /** @param {boolean} isOn */
  print(isOn) {
    this.#dots.print();
    this.#table.print(isOn);
  }

  destroy() {
    this.#dots.destroy();
    this.#table.destroy();
  }

  #legend() {
    const { labels, points } = this.#first;
    const sides = labels.map((title, side) => ({ title, colour: SIDES[side] }));
    return [
      legend(sides, "Colours of the sides"),
      h("span", { class: "mtprof-unit", text: `a dot: a ${points.unit}` }),
    ];
  }

  #tools() {
    const { rows, levels } = this.#first;
    const there = [...new Set(rows.family)].map((at) => levels[at].title);
    const options = [{ key: "", title: "all rows" }, ...there.map((title) => ({ key: title, title: `${title}s` }))];
    const { select } = choiceBy("Rows", options, (key) => {
      this.#level = key;
      this.#list();
    });
    const few = rows.small.filter(Boolean).length;
    this.#small.textContent = `${number(few)} small ones`;
    this.#small.title = "Show rows with less than 1 % of the time on both sides";
    this.#small.hidden = few === 0;
    return h("div", { class: "mtprof-tools" }, select, this.#small, this.#count);
  }

  #toggleSmall() {
    const isOn = this.#small.getAttribute("aria-pressed") !== "true";
    this.#small.setAttribute("aria-pressed", String(isOn));
    this.#list();
  }

  #list() {
    const { columns, rows, levels, more_rows } = this.#first;
    const withSmall = this.#small.getAttribute("aria-pressed") === "true";
    this.#table.fill(columns, rows);
    const order = this.#table.sort.key ? sorted(this.#table, rows, this.#table.sort) : rows.id;
    const listed = order
      .filter((row) => withSmall || !rows.small[row])
      .filter((row) => !this.#level || levels[rows.family[row]].title === this.#level);
    this.#table.show(listed, "No row of this kind.");
    const more = more_rows ? `, ${number(more_rows)} smaller ones left out` : "";
    this.#count.textContent = `${number(listed.length)} of ${number(rows.id.length)} rows${more}`;
  }

  /** @param {number | null} id @param {number} row */
  #select(id, row) {
    const { rows } = this.#first;
    this.#table.select(id, false);
    this.#why.textContent =
      id === null ? "" : `${rows.label[row]}: ${rows.text?.verdict[row]}. ${rows.hint?.verdict[row]}`;
  }
}

/** A list of the changes that are certain. @param {DifferencesFirst} first */
function changeList({ changes, more_changes, labels }) {
  const head = h(
    "tr",
    {},
    h("th", { text: "Changed, whatever the noise" }),
    ...labels.map((text) => h("th", { text })),
    h("th"),
  );
  const rows = changes.map((cells) => h("tr", {}, ...cells.map((text) => h("td", { text, title: text }))));
  const more = more_changes ? [h("tr", {}, h("td", { text: `and ${number(more_changes)} more` }))] : [];
  const nothing = changes.length ? [] : [h("tr", {}, h("td", { text: "nothing that was recorded" }))];
  return h("div", { class: "mtprof-changes", tabindex: "0" }, h("table", {}, head, ...rows, ...nothing, ...more));
}
