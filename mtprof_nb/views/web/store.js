// What the tabs of one panel tell each other: which row is selected, and which event was picked in a chart.

export class Store {
  #wire;
  #selectListeners = [];
  #pickListeners = [];
  /** How the operators table groups at present. */
  grouping = "op";
  /** @type {{ grouping: string, row: number, label: string, detail: string, name: number, question?: object } | null} */
  selection = null;

  constructor(wire) {
    this.#wire = wire;
  }

  onselect(listener) {
    this.#selectListeners.push(listener);
  }

  onpick(listener) {
    this.#pickListeners.push(listener);
  }

  /** Selects a row of the table, or nothing. Python hears of it before the charts ask how to draw it. */
  select(selection) {
    if (selection === null && this.selection === null) return;
    this.selection = selection;
    const row = selection?.row ?? null;
    // Who selects something that is no row of the operators table says what Python is to be asked.
    this.#wire.raw(selection?.question ?? { tab: "operators", ask: "select", grouping: selection?.grouping ?? this.grouping, row });
    for (const listener of this.#selectListeners) listener(selection);
  }

  /** An event was clicked in a chart; the table answers by selecting its row. */
  pick(event, name) {
    for (const listener of this.#pickListeners) listener({ event, name });
  }
}
