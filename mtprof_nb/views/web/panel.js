// The panel: the strip, the tabs, and the chip that says what is selected.

import { h } from "./dom.js";
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

  const chip = h("button", {
    type: "button",
    class: "mtprof-chip",
    hidden: true,
    title: "Clear the selection",
    onclick: () => store.select(null),
  });
  store.onselect((selection) => {
    chip.hidden = selection === null;
    chip.replaceChildren(
      ...(selection ? [h("span", { class: "mtprof-chip-label", text: selection.label }), " ×"] : []),
    );
    chip.setAttribute("aria-label", selection ? `Selected: ${selection.label}. Clear the selection` : "");
  });
  const problem = h("div", { class: "mtprof-problem", role: "alert", hidden: true });
  wire.onerror = (text) => {
    problem.hidden = false;
    problem.textContent = `The kernel could not answer: ${text}`;
  };

  const absent = h("div", { class: "mtprof-absent", role: "status", text: ABSENT });
  wire.onchange(() => (absent.hidden = !wire.silent));

  const list = h(
    "div",
    { class: "mtprof-tabs", role: "tablist", "aria-label": "Views of the profile" },
    ...tabs.map((tab) => tab.button),
  );
  const bar = h("div", { class: "mtprof-bar" }, list, chip);
  if (strip.title) root.append(stripOf(strip));
  root.append(bar, problem, absent, ...tabs.map((tab) => tab.host));
  if (tabs.length < 2) list.hidden = true;
  if (model.get("page")) root.append(hiding(model.get("page")));
  el.replaceChildren(root);

  /** @param {PanelTab} tab */
  const open = (tab) => {
    for (const other of tabs) other.turn(other === tab);
    return tab.open({ model, wire, store, mount: kinds[tab.name].mount });
  };
  for (const tab of tabs) tab.button.addEventListener("click", () => open(tab));
  list.addEventListener("keydown", (event) => {
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
  });
  keepKeys(root, ending.signal);
  const restyle = () => {
    for (const tab of tabs) tab.view?.restyle?.();
  };
  watchTheme(root, restyle, ending.signal);

  wire.hello();
  // Lines alone are of a cell without ops: nothing can be selected there.
  bar.hidden = tabs.length === 0 || (tabs.length === 1 && tabs[0].name === "lines");
  if (tabs.length) await open(tabs[0]);
  return () => {
    ending.abort();
    for (const tab of tabs) tab.view?.destroy?.();
  };
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
    const [button, host] = [`${prefix}-tab-${name}`, `${prefix}-${name}`];
    this.button = h("button", {
      type: "button",
      class: "mtprof-tab",
      role: "tab",
      id: button,
      "aria-controls": host,
      text: title,
    });
    this.host = h("div", {
      class: `mtprof-body mtprof-${name}`,
      role: "tabpanel",
      id: host,
      "aria-labelledby": button,
      hidden: true,
    });
  }

  /**
   * In front, or behind.
   * @param {boolean} front
   */
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
   * What the tab draws first: sent with the panel, or worked out by Python now.
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
    const waiting = h("p", { class: "mtprof-empty", role: "status", text: "Working it out …" });
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
