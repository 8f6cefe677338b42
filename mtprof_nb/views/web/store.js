// What the tabs of one panel tell each other: which row is selected, and which event was picked in a chart.

/**
 * @import { Selection } from "./surroundings"
 * @typedef {{ event: number, name: number }} Picked an event, and the position of its name
 */

export class Store {
  #wire;
  /** @type {((selection: Selection | null) => void)[]} */
  #selectListeners = [];
  /** @type {((picked: Picked) => void)[]} */
  #pickListeners = [];
  /** How the operators table groups at present. */
  grouping = "op";
  /** @type {Selection | null} */
  selection = null;

  /** @param {import("./wire.js").Wire} wire */
  constructor(wire) {
    this.#wire = wire;
  }

  /** @param {(selection: Selection | null) => void} listener */
  onselect(listener) {
    this.#selectListeners.push(listener);
  }

  /** @param {(picked: Picked) => void} listener */
  onpick(listener) {
    this.#pickListeners.push(listener);
  }

  /**
   * Selects a row of the table, or nothing. Python hears of it before the charts ask how to draw it.
   * @param {Selection | null} selection
   */
  select(selection) {
    if (selection === null && this.selection === null) return;
    this.selection = selection;
    const row = selection?.row ?? null;
    // Who selects something that is no row of the operators table says what Python is to be asked.
    this.#wire.raw(
      selection?.question ?? { tab: "operators", ask: "select", grouping: selection?.grouping ?? this.grouping, row },
    );
    for (const listener of this.#selectListeners) listener(selection);
  }

  /**
   * An event was clicked in a chart; the table answers by selecting its row.
   * @param {number} event
   * @param {number} name
   */
  pick(event, name) {
    for (const listener of this.#pickListeners) listener({ event, name });
  }
}
