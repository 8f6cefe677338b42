// The rows of the operators table, and the lines, that events belong to, for all events that a page carries.

/**
 * @import { CarriedOperators, CarriedRows } from "../types/carried"
 * @import { Selected } from "../types/messages"
 */

export class PageRows {
  #carried;
  #tables;
  /** @type {Map<number, number>} positions of the events */
  #position;

  /** @param {CarriedRows} carried @param {CarriedOperators["tables"]} tables */
  constructor(carried, tables) {
    this.#carried = carried;
    this.#tables = tables;
    this.#position = new Map(carried.events.map((event, at) => [event, at]));
  }

  /** The row of an event under a grouping, -1 for none. @param {string} grouping @param {number} event */
  rowOf(grouping, event) {
    return this.#carried.rows[grouping]?.[this.#position.get(event) ?? -1] ?? -1;
  }

  /** The line that caused an event, -1 for none. @param {number} event */
  lineOf(event) {
    return this.#carried.lines[this.#position.get(event) ?? -1] ?? -1;
  }

  /**
   * The rows under a grouping that have selected events, in order.
   * @param {Selected | null} selected
   * @param {string} grouping
   */
  litBy(selected, grouping) {
    if (!selected) return [];
    const rows = this.#carried.rows[grouping] ?? [];
    const own = this.#carried.rows[selected.grouping] ?? [];
    const chosen = this.chosen(selected);
    const lit = new Set(rows.filter((row, at) => row >= 0 && chosen.has(own[at])));
    return [...lit].sort((one, other) => one - other);
  }

  /** The rows whose events are selected: of a module, also those of its submodules. @param {Selected} selected */
  chosen({ grouping, row }) {
    const rows = grouping === "module" ? this.#tables.module?.rows : undefined;
    const path = rows?.label[rows.id.indexOf(row)];
    if (!rows || path === undefined) return new Set([row]);
    return new Set([row, ...rows.id.filter((_, at) => rows.label[at].startsWith(`${path}.`))]);
  }
}
