// The lines tab: source text, and on each line a bar with what it cost forward, backward and in the optimizer.

import { button, h } from "../../web/dom.js";
import { phaseKey } from "../../web/strip.js";
import { Listing } from "./listing.js";

/**
 * @import { LinesFirst } from "../../web/types/messages"
 * @import { TabContext, TabView } from "../../web/types/surroundings"
 */

/** @param {TabContext<LinesFirst>} context @returns {TabView} */
export function mount({ host, first, wire, store }) {
  const listing = new Listing({ first, wire, store });
  host.append(tools(first, listing));
  if (first.note) host.append(h("div", { class: "mtprof-line-note", role: "note", text: first.note }));
  host.append(h("div", { class: "mtprof-stage" }, listing.element));
  store.on("select", (selection) => listing.show(selection));
  store.on("seek", () => listing.seek());
  store.on("point", () => listing.pointAt(store.pointed));
  store.on("pick", ({ line }) => listing.point(line));
  // The tab has its height only once it is on the page.
  requestAnimationFrame(() => {
    if (store.selection) listing.show(store.selection);
    else if (!listing.pointAt(store.pointed)) listing.revealHottest();
  });
  return { shown: () => listing.reveal() };
}

/** @param {LinesFirst} first @param {Listing} listing */
function tools({ phases, outside, hint }, listing) {
  const keys = [...phases, ...(outside === null ? [] : [outside])].map((phase) => phaseKey(phase, phase));
  const hottest = button({
    text: "Hottest line",
    title: "Bring the line that took longest into view",
    onclick: () => listing.revealHottest(),
  });
  return h(
    "div",
    { class: "mtprof-tools" },
    hottest,
    h("div", { class: "mtprof-line-keys", "aria-label": "Phases" }, ...keys),
    h("span", { class: "mtprof-count", text: ["Click a line for its ops", hint].filter(Boolean).join("; ") }),
  );
}
