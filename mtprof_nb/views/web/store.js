// State that the tabs of one panel share: the selected row, and the event that was clicked in a chart.

/**
 * @import { Selected, TabName } from "./types/messages"
 * @import { Search } from "./search.js"
 * @import { Selection } from "./types/surroundings"
 * @typedef {{ event: number, name: number, line: number }} Picked an event, the position of its name, and its line
 */

export class Store {
  /** @type {((selection: Selection | null) => void)[]} */
  #selectListeners = [];
  /** @type {((picked: Picked) => void)[]} */
  #pickListeners = [];
  /** @type {((tab: TabName) => void)[]} */
  #openListeners = [];
  /** @type {((process: number) => void)[]} */
  #aloneListeners = [];
  /** The present grouping of the operators table. */
  grouping = "op";
  /** @type {Selection | null} */
  selection = null;
  /** @type {(() => void)[]} */
  #seekListeners = [];
  /** @type {Search} what the search field holds; an empty text searches nothing */
  search = { text: "", regex: false };
  /** @type {(() => void)[]} */
  #pointListeners = [];
  /** The source line without ops that was pointed at last, such as `Cell [3]:4`; "" where something was selected since. */
  pointed = "";
  /** The event that was clicked last; -1 where nothing was, or something else was selected since. */
  picked = -1;

  /** @param {(selection: Selection | null) => void} listener */
  onselect(listener) {
    this.#selectListeners.push(listener);
  }

  /** @param {(picked: Picked) => void} listener */
  onpick(listener) {
    this.#pickListeners.push(listener);
  }

  /** @param {() => void} listener */
  onseek(listener) {
    this.#seekListeners.push(listener);
  }

  /** Searches in all tabs. @param {Search} search */
  seek(search) {
    this.search = search;
    for (const listener of this.#seekListeners) listener();
  }

  /** @param {() => void} listener */
  onpoint(listener) {
    this.#pointListeners.push(listener);
  }

  /** Points at a source line that ran no ops, which cannot be selected. @param {string} location */
  point(location) {
    this.select(null);
    this.pointed = location;
    for (const listener of this.#pointListeners) listener();
  }

  /** @param {(tab: TabName) => void} listener */
  onopen(listener) {
    this.#openListeners.push(listener);
  }

  /** @param {(process: number) => void} listener */
  onalone(listener) {
    this.#aloneListeners.push(listener);
  }

  /** Shows one process alone, all for -1. @param {number} process */
  alone(process) {
    for (const listener of this.#aloneListeners) listener(process);
  }

  /** Brings a tab to the front. @param {TabName} tab */
  open(tab) {
    for (const listener of this.#openListeners) listener(tab);
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
    for (const listener of this.#selectListeners) listener(selection);
  }

  /** An event was clicked in a chart; the table answers by selecting its row. @param {Picked} picked */
  pick(picked) {
    for (const listener of this.#pickListeners) listener(picked);
  }
}
