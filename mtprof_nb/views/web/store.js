// State that the tabs of one panel share: the selected row, and the event that was clicked in a chart.

/**
 * @import { Selected, TabName } from "./types/messages"
 * @import { Search } from "./search.js"
 * @import { Selection } from "./types/surroundings"
 * @typedef {{ event: number, name: number, line: number }} Picked an event, the position of its name, and its line
 * @typedef {object} Changes what listeners are called with, by the name of what happened
 * @property {[selection: Selection | null]} select
 * @property {[picked: Picked]} pick an event was clicked in a chart; the table answers by selecting its row
 * @property {[tab: TabName]} open a tab is to come to the front
 * @property {[process: number]} alone one process is to be shown alone, all for -1
 * @property {[]} seek
 * @property {[]} point
 */

export class Store {
  /** @type {{ [Name in keyof Changes]: ((...values: Changes[Name]) => void)[] }} */
  #listeners = { select: [], pick: [], open: [], alone: [], seek: [], point: [] };
  /** The present grouping of the operators table. */
  grouping = "op";
  /** @type {Selection | null} */
  selection = null;
  /** @type {Search} the text of the search field; an empty text searches nothing */
  search = { text: "", regex: false };
  /** The source line without ops that was pointed at last, such as `Cell [3]:4`; "" where something was selected since. */
  pointed = "";
  /** The event that was clicked last; -1 where nothing was, or something else was selected since. */
  picked = -1;

  /**
   * @template {keyof Changes} Name
   * @param {Name} name
   * @param {(...values: Changes[Name]) => void} listener
   */
  on(name, listener) {
    this.#listeners[name].push(listener);
  }

  /**
   * Calls the listeners of `name`.
   * @template {keyof Changes} Name
   * @param {Name} name
   * @param {Changes[Name]} values
   */
  emit(name, ...values) {
    for (const listener of this.#listeners[name]) listener(...values);
  }

  /** Searches in all tabs. @param {Search} search */
  seek(search) {
    this.search = search;
    this.emit("seek");
  }

  /** Points at a source line that ran no ops, which cannot be selected. @param {string} location */
  point(location) {
    this.select(null);
    this.pointed = location;
    this.emit("point");
  }

  /**
   * The selection as a question carries it. Python keeps none, so that views of one panel do not disturb each other.
   * @returns {Selected | null}
   */
  get selected() {
    return this.selection && { grouping: this.selection.grouping, row: this.selection.row };
  }

  /** The rows that are selected, under the grouping of the selection. */
  get chosen() {
    return new Set(this.selection?.rows ?? (this.selection ? [this.selection.row] : []));
  }

  /**
   * Selects a row of the table, or a line, or nothing.
   * @param {Selection | null} selection
   * @param {number} picked the event of it that was clicked, -1 where a row or line was
   */
  select(selection, picked = -1) {
    this.pointed = "";
    if (selection === null && this.selection === null) return;
    this.selection = selection;
    this.picked = picked;
    this.emit("select", selection);
  }
}
