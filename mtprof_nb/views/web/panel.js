// The panel: the strip, the tabs, and the chip with the selection.

import { button, choiceBy, h } from "./dom.js";
import { keepKeys } from "./keys.js";
import { searchField } from "./search.js";
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
 * @typedef {object} Context as anywidget gives it
 * @property {Model} model
 * @property {HTMLElement} el
 * @property {boolean} [opensAll] whether tabs that are hidden are prepared too, so that they can be printed
 */

/**
 * Draws the panel, and again where one process is to be shown alone.
 * @param {Context} context
 * @param {Record<TabName, TabModule>} kinds the tabs' modules by name
 */
export async function render(context, kinds) {
  let end = () => {};
  /** @param {number} process @param {TabName} [opened] */
  const show = async (process, opened) => {
    end();
    end = await draw(context, kinds, { process, opened, show });
  };
  await show(-1, context.model.get("opened"));
  return () => end();
}

/**
 * @param {Context} context
 * @param {Record<TabName, TabModule>} kinds
 * @param {{ process: number, opened?: TabName, show: (process: number, opened: TabName) => void }} chosen the process
 *   that is shown, -1 for all, the tab that is opened, and what shows another process
 */
async function draw({ model, el, opensAll = false }, kinds, { process, opened, show }) {
  const wire = new Wire(model, process);
  const store = new Store();
  const ending = new AbortController();
  const prefix = `mtprof-${++panels}`;
  const panel = { model, wire, store, kinds, process };
  const tabs = model.get("tabs").map(({ name, title }) => new PanelTab(name, title, prefix, panel));
  const strip = model.get("strip");
  const root = h("section", { class: "mtprof", "aria-label": strip.title ? `Profile of ${strip.title}` : "Operators" });
  const bar = h(
    "div",
    { class: "mtprof-bar" },
    tabList(tabs),
    selectionChip(store),
    ...rankChoice(model, store, wire, process),
    tabs.some((tab) => tab.name === "operators") ? searchField(store) : null,
  );
  // Of tabs that stand alone, such as the lines of a cell without ops, only the operators can be selected.
  bar.hidden = tabs.length === 0 || (tabs.length === 1 && tabs[0].name !== "operators");
  if (strip.title) root.append(stripOf(strip));
  root.append(bar, ...kernelNotes(wire), ...tabs.map((tab) => tab.host));
  if (model.get("page")) root.append(hiding(model.get("page")));
  el.replaceChildren(root);
  keepKeys(root, ending.signal);
  const restyle = () => {
    for (const tab of tabs) tab.view?.restyle?.();
  };
  watchTheme(root, restyle, ending.signal);
  unfoldInPrint(root, tabs, ending.signal);
  wire.hello();
  store.on("open", (name) => {
    const tab = tabs.find((one) => one.name === name);
    if (tab) open(tab, tabs);
  });
  const front = () => tabs.find((tab) => !tab.host.hidden)?.name ?? "summary";
  // A rank that is chosen among the ranks is shown from its overview on.
  store.on("alone", (number) => show(number, front() === "ranks" ? "summary" : front()));
  if (tabs.length) await open(tabs.find((tab) => tab.name === opened) ?? tabs[0], tabs);
  // A click in a chart selects a row of the operators, so that these are ready before they are shown.
  await tabs.find((tab) => tab.name === "operators")?.open();
  if (opensAll) for (const tab of tabs) await tab.open();
  return () => {
    ending.abort();
    for (const tab of tabs) tab.view?.destroy?.();
  };
}

/**
 * A list of ranks to show one alone; none where there is one process, or no Python.
 * @param {Model} model
 * @param {Store} store
 * @param {Wire} wire
 * @param {number} process
 */
function rankChoice(model, store, wire, process) {
  const ranks = model.get("ranks") ?? [];
  if (!ranks.length) return [];
  const options = [
    { key: "-1", title: "all ranks" },
    ...ranks.map((rank) => ({ key: `${rank.process}`, title: rank.title })),
  ];
  const { select } = choiceBy("Ranks to show", options, (key) => store.emit("alone", Number(key)));
  select.value = String(process);
  select.classList.add("mtprof-rank-choice");
  wire.onchange(() => (select.disabled = wire.silent));
  return [select];
}

/** @param {PanelTab} tab @param {PanelTab[]} tabs of the panel, of which the others are hidden */
function open(tab, tabs) {
  for (const other of tabs) other.turn(other === tab);
  return tab.open();
}

/**
 * Shows all tabs that were opened, one below the other, while the page is printed.
 * @param {HTMLElement} root
 * @param {PanelTab[]} tabs
 * @param {AbortSignal} signal ends it
 */
function unfoldInPrint(root, tabs, signal) {
  /** @param {boolean} isOn */
  const unfold = (isOn) => {
    root.classList.toggle("mtprof-printing", isOn);
    for (const tab of tabs) tab.print(isOn);
  };
  window.addEventListener("beforeprint", () => unfold(true), { signal });
  window.addEventListener("afterprint", () => unfold(false), { signal });
}

/** The tabs' buttons, which arrow keys move between. @param {PanelTab[]} tabs */
function tabList(tabs) {
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
    open(tab, tabs);
  };
  for (const tab of tabs) tab.button.addEventListener("click", () => open(tab, tabs));
  const label = "Views of the profile";
  const hidden = tabs.length < 2;
  return h("div", { class: "mtprof-tabs", role: "tablist", "aria-label": label, hidden, onkeydown }, ...buttons);
}

/** Says what is selected; a click clears the selection. @param {Store} store */
function selectionChip(store) {
  const onclick = () => store.select(null);
  const chip = button({ class: "mtprof-chip", hidden: true, title: "Clear the selection", onclick });
  store.on("select", (selection) => {
    chip.hidden = selection === null;
    const label = selection?.label ?? "";
    chip.replaceChildren(...(selection ? [h("span", { class: "mtprof-chip-label", text: label }), " ×"] : []));
    chip.setAttribute("aria-label", selection ? `Selected: ${label}. Clear the selection` : "");
  });
  return chip;
}

/** Says that the kernel could not answer, and that it is gone or busy. @param {Wire} wire */
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
  #opened = null;
  /** Whether the selection changed while the tab was hidden. */
  #isStale = false;
  #panel;

  /**
   * @param {TabName} name
   * @param {string} title
   * @param {string} prefix of the ids of its elements
   * @param {{ model: Model, wire: Wire, store: Store, kinds: Record<TabName, TabModule>, process: number }} panel
   */
  constructor(name, title, prefix, panel) {
    this.name = name;
    this.title = title;
    this.#panel = panel;
    const [id, host] = [`${prefix}-tab-${name}`, `${prefix}-${name}`];
    this.button = button({ class: "mtprof-tab", role: "tab", id, "aria-controls": host, text: title });
    const attributes = { class: `mtprof-body mtprof-${name}`, role: "tabpanel", id: host, "aria-labelledby": id };
    this.host = h("div", { ...attributes, hidden: true, "data-title": title });
    panel.store.on("select", () => {
      if (this.host.hidden) this.#isStale = this.view !== null;
      else this.view?.renew?.();
    });
  }

  /** @param {boolean} front whether the tab is shown */
  turn(front) {
    this.host.hidden = !front;
    this.button.setAttribute("aria-selected", String(front));
    this.button.tabIndex = front ? 0 : -1;
  }

  /** Shows the tab while it is printed, if it has content. @param {boolean} isOn */
  print(isOn) {
    this.host.hidden = isOn ? this.view === null : this.button.tabIndex < 0;
    this.view?.print?.(isOn);
  }

  open() {
    this.view?.shown?.();
    if (this.#isStale) this.view?.renew?.();
    this.#isStale = false;
    this.#opened ??= this.#mount();
    return this.#opened;
  }

  async #mount() {
    const { wire, store, kinds } = this.#panel;
    /** @type {Firsts[TabName] | Empty} */
    const first = await unpacked(await this.#sent());
    this.host.replaceChildren();
    if ("empty" in first) this.host.append(h("p", { class: "mtprof-empty", text: first.empty }));
    else this.view = kinds[this.name].mount({ host: this.host, first: /** @type {never} */ (first), wire, store });
  }

  /** The initial content of the tab; of one process alone, Python computes it. The ranks are always of all. */
  async #sent() {
    const { model, wire, process } = this.#panel;
    if (process < 0 || this.name === "ranks") return model.get("first")[this.name] ?? (await this.#computed());
    this.#wait();
    return /** @type {DataView<ArrayBuffer>} */ (await wire.raw({ tab: this.name, ask: "first" }));
  }

  /** Shows that the tab is being computed. */
  #wait() {
    const waiting = h("p", { class: "mtprof-empty", role: "status", text: "Computing …" });
    this.host.replaceChildren(waiting);
    return waiting;
  }

  /** The initial content of the tab, which was not sent with the panel and is computed by Python now. */
  async #computed() {
    const { model, wire } = this.#panel;
    const waiting = this.#wait();
    const late = setTimeout(() => {
      const gone = `${this.title} was not opened while the kernel ran: run the cell again to see it.`;
      waiting.textContent = wire.live ? "The kernel is busy; this appears as soon as it is free." : gone;
    }, PATIENCE_MS);
    /** @type {Promise<DataView<ArrayBuffer>>} */
    const arrived = new Promise((resolve) => {
      model.on("change:first", () => {
        const sent = model.get("first")[this.name];
        if (sent) resolve(sent);
      });
    });
    wire.raw({ tab: this.name, ask: "first" });
    const sent = await arrived;
    clearTimeout(late);
    return sent;
  }
}
