// The controls above the operators table: grouping, number of rows, copy.

import { button, choiceBy, h, word } from "../../web/dom.js";
import { number } from "../../web/format.js";

/**
 * @import { OperatorsFirst } from "../../web/types/messages"
 * @typedef {Record<"onregroup" | "onall" | "oncopy" | "onmarkdown", () => void>} ToolListeners
 */

export class OperatorTools {
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
