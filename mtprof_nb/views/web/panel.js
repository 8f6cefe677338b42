// The panel: the strip, the tabs, and the chip with the selection.

import { button, h } from "./dom.js";
import { keepKeys } from "./keys.js";
import { Store } from "./store.js";
import { stripOf } from "./strip.js";
import { watchTheme } from "./theme.js";
import { PATIENCE_MS, Wire, unpacked } from "./wire.js";

/**
 * @import { Empty, Firsts, TabName } from "./types/messages"
 * @import { Model, TabModule, TabView } from "./types/surroundings"
 */

const ABSENT = "The kernel is gone or busy: what needs it is greyed out. Run the cell again if it stays so.";
let panels = 0;

/**
 * @param {{ model: Model, el: HTMLElement }} context as anywidget gives it
 * @param {Record<TabName, TabModule>} kinds the tabs' modules by name
 */
export async function render({ model, el }, kinds) {
  const wire = new Wire(model);
  const store = new Store();
  const ending = new AbortController();
  const prefix = `mtprof-${++panels}`;
  const tabs = model.get("tabs").map(({ name, title }) => new PanelTab(name, title, prefix));
  const strip = model.get("strip");
  const root = h("section", { class: "mtprof", "aria-label": strip.title ? `Profile of ${strip.title}` : "Operators" });
  /** @param {PanelTab} tab */
  const open = (tab) => {
    for (const other of tabs) other.turn(other === tab);
    return tab.open({ model, wire, store, mount: kinds[tab.name].mount });
  };
  const bar = h("div", { class: "mtprof-bar" }, tabList(tabs, open), selectionChip(store));
  // A cell without ops has the lines tab alone: nothing can be selected there.
  bar.hidden = tabs.length === 0 || (tabs.length === 1 && tabs[0].name === "lines");
  if (strip.title) root.append(stripOf(strip));
  root.append(bar, ...kernelNotes(wire), ...tabs.map((tab) => tab.host));
  if (model.get("page")) root.append(hiding(model.get("page")));
  el.replaceChildren(root);
  keepKeys(root, ending.signal);
  const restyle = () => {
    for (const tab of tabs) tab.view?.restyle?.();
  };
  watchTheme(root, restyle, ending.signal);
  wire.hello();
  if (tabs.length) await open(tabs[0]);
  return () => {
    ending.abort();
    for (const tab of tabs) tab.view?.destroy?.();
  };
}

/**
 * The tabs' buttons, which arrow keys move between.
 * @param {PanelTab[]} tabs
 * @param {(tab: PanelTab) => void} open
 */
function tabList(tabs, open) {
  const buttons = tabs.map((tab) => tab.button);
  const onkeydown = (/** @type {KeyboardEvent} */ event) => {
    const at = tabs.findIndex((tab) => tab.button === document.activeElement);
    /** @type {Record<string, number>} */
    const targets = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: tabs.length - 1 };
    const to = targets[event.key];
    if (to === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    const tab = tabs[(to + tabs.length) % tabs.length];
    tab.button.focus();
    open(tab);
  };
  for (const tab of tabs) tab.button.addEventListener("click", () => open(tab));
  const label = "Views of the profile";
  const hidden = tabs.length < 2;
  return h("div", { class: "mtprof-tabs", role: "tablist", "aria-label": label, hidden, onkeydown }, ...buttons);
}

/**
 * Says what is selected; a click clears the selection.
 * @param {Store} store
 */
function selectionChip(store) {
  const onclick = () => store.select(null);
  const chip = button({ class: "mtprof-chip", hidden: true, title: "Clear the selection", onclick });
  store.onselect((selection) => {
    chip.hidden = selection === null;
    const label = selection?.label ?? "";
    chip.replaceChildren(...(selection ? [h("span", { class: "mtprof-chip-label", text: label }), " ×"] : []));
    chip.setAttribute("aria-label", selection ? `Selected: ${label}. Clear the selection` : "");
  });
  return chip;
}

/**
 * Says that the kernel could not answer, and that it is gone or busy.
 * @param {Wire} wire
 */
function kernelNotes(wire) {
  const problem = h("div", { class: "mtprof-problem", role: "alert", hidden: true });
  wire.onerror = (text) => {
    problem.hidden = false;
    problem.textContent = `The kernel could not answer: ${text}`;
  };
  const absent = h("div", { class: "mtprof-absent", role: "status", text: ABSENT });
  wire.onchange(() => (absent.hidden = !wire.silent));
  return [problem, absent];
}

/**
 * A style that hides the page without scripts, and the row of its output, for as long as the panel is in the document.
 * @param {string} page
 */
function hiding(page) {
  const own = `[data-mtprof-page="${page}"]`;
  const rows = `.jp-OutputArea-child:has(> .jp-RenderedHTML > ${own}), .output_area:has(> .output_html > ${own})`;
  return h("style", { text: `${own} { display: none } ${rows} { display: none }` });
}

class PanelTab {
  /** @type {TabView | null} */
  view = null;
  /** @type {Promise<void> | null} */
  opened = null;

  /** @param {TabName} name @param {string} title @param {string} prefix of the ids of its elements */
  constructor(name, title, prefix) {
    this.name = name;
    this.title = title;
    const [id, host] = [`${prefix}-tab-${name}`, `${prefix}-${name}`];
    this.button = button({ class: "mtprof-tab", role: "tab", id, "aria-controls": host, text: title });
    const attributes = { class: `mtprof-body mtprof-${name}`, role: "tabpanel", id: host, "aria-labelledby": id };
    this.host = h("div", { ...attributes, hidden: true });
  }

  /** @param {boolean} front whether the tab is shown */
  turn(front) {
    this.host.hidden = !front;
    this.button.setAttribute("aria-selected", String(front));
    this.button.tabIndex = front ? 0 : -1;
  }

  /** @param {{ model: Model, wire: Wire, store: Store, mount: TabModule["mount"] }} parts of the panel */
  async open({ model, wire, store, mount }) {
    if (this.opened) {
      this.view?.shown?.();
      return this.opened;
    }
    this.opened = this.#fill(model, wire).then((first) => {
      this.host.replaceChildren();
      if ("empty" in first) this.host.append(h("p", { class: "mtprof-empty", text: first.empty }));
      else this.view = mount({ host: this.host, first: /** @type {never} */ (first), wire, store });
    });
    return this.opened;
  }

  /**
   * The initial content of the tab: sent with the panel, or computed by Python now.
   * @param {Model} model
   * @param {Wire} wire
   * @returns {Promise<Firsts[TabName] | Empty>}
   */
  async #fill(model, wire) {
    const sent = model.get("first")[this.name];
    return unpacked(sent ?? (await this.#arrival(model, wire)));
  }

  /**
   * @param {Model} model
   * @param {Wire} wire
   * @returns {Promise<DataView<ArrayBuffer>>}
   */
  async #arrival(model, wire) {
    const waiting = h("p", { class: "mtprof-empty", role: "status", text: "Computing …" });
    this.host.replaceChildren(waiting);
    const late = setTimeout(() => {
      const gone = `${this.title} was not opened while the kernel ran: run the cell again to see it.`;
      waiting.textContent = wire.live ? "The kernel is busy; this appears as soon as it is free." : gone;
    }, PATIENCE_MS);
    /** @type {Promise<DataView<ArrayBuffer>>} */
    const arrived = new Promise((resolve) => {
      model.on("change:first", () => {
        const sent = model.get("first")[this.name];
        if (sent !== undefined) resolve(sent);
      });
    });
    wire.raw({ tab: this.name, ask: "first" });
    const sent = await arrived;
    clearTimeout(late);
    return sent;
  }
}
