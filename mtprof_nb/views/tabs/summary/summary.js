// The overview tab: a sentence, the hottest lines, ops and functions, what the program waited for, and what to change.

import { h, link } from "../../web/dom.js";
import { duration, number } from "../../web/format.js";
import { shortLocation } from "../../web/label.js";

/**
 * @import { Store } from "../../web/store.js"
 * @import { SlowFunction, SlowOp, LineLink, ShownFinding, SummaryFirst } from "./summary_types"
 * @import { TabContext, TabView } from "../../web/types/surroundings"
 */

/** Characters of a location that are shown at most. */
const LONGEST = 19;

/** @param {TabContext<SummaryFirst>} context @returns {TabView} */
export function mount({ host, first, store }) {
  const lines = first.lines.map((line) => entry(lineLink(line, store), duration(line.time_ns), line.share, line.text));
  const ops = first.ops.map((op) => entry(opLink(op, store), duration(op.time_ns), op.share, calls(op.count)));
  const functions = first.functions.map((one) =>
    entry(h("span", { text: one.label }), estimate(one), one.share, shortLocation(one.location), one.location),
  );
  const waits = first.waits.map(({ title, ns, share }) =>
    entry(h("span", { text: title, title }), duration(ns), share),
  );
  const compilations = first.compilations.map(({ label, location, why, stages, time_ns, share }) =>
    entry(h("span", { text: label, title: location }), duration(time_ns), share, why, stages),
  );
  const breaks = first.breaks.map((text) => entry(h("span", { text, title: text }), "", ""));
  host.append(
    h(
      "div",
      { class: "mtprof-summary-scroll", tabindex: "0", role: "region", "aria-label": "Overview" },
      h("p", { class: "mtprof-summary-sentence", text: first.sentence }),
      h("h4", { class: "mtprof-summary-head", text: "What to change" }),
      ...findings(first, store),
      ...first.notes.map((note) => h("p", { class: "mtprof-summary-note", text: note })),
      h(
        "div",
        { class: "mtprof-summary-lists" },
        list(`Hottest lines${first.on}`, lines),
        list(`Hottest ops${first.on}`, ops),
        list("Hottest functions, outside ops", functions),
        list("Longest compilations", compilations),
        list("Graph breaks", breaks),
        list("Time waited, of the time that passed", waits),
      ),
    ),
  );
  return {};
}

/** @param {SummaryFirst} first @param {Store} store */
function findings({ findings: all, nothing }, store) {
  if (!all.length) return [h("p", { class: "mtprof-summary-quiet", text: nothing })];
  return all.map((one) => finding(one, store));
}

/** @param {ShownFinding} one @param {Store} store */
function finding(one, store) {
  const line = one.location
    ? h("div", { class: "mtprof-summary-line" }, lineLink(one, store), " ", h("code", { text: one.text }))
    : null;
  return h(
    "article",
    { class: "mtprof-finding", "data-rule": one.rule },
    h("div", { class: "mtprof-finding-title", text: one.title }),
    line,
    h("div", { text: one.evidence }),
    h("pre", { class: "mtprof-finding-fix", text: one.fix.join("\n") }),
    h("div", {
      class: "mtprof-summary-quiet",
      text: `A fix can save ${one.bound}, an upper bound. How sure: ${one.certainty}.`,
    }),
  );
}

/** @param {string} title @param {HTMLElement[]} entries */
function list(title, entries) {
  if (!entries.length) return null;
  return h(
    "div",
    { class: "mtprof-summary-list" },
    h("h4", { class: "mtprof-summary-head", text: title }),
    h("div", { role: "list", "aria-label": title }, ...entries),
  );
}

/** @param {HTMLElement} name @param {string} time @param {string} share */
function entry(name, time, share, detail = "", title = detail) {
  return h(
    "div",
    { class: "mtprof-summary-entry", role: "listitem" },
    h("span", { class: "mtprof-summary-name" }, name, detail ? h("code", { text: ` ${detail}`, title }) : null),
    h("span", { class: "mtprof-summary-number", text: time }),
    h("span", { class: "mtprof-summary-number", text: share }),
  );
}

/**
 * The location of a line; a click selects the line in the lines tab, or points at it there if it ran no ops.
 * @param {LineLink} line
 * @param {Store} store
 */
function lineLink({ id, location, text }, store) {
  return link(shortened(location), `Open ${location} in Lines`, () => {
    store.emit("open", "lines");
    if (id < 0) store.point(location);
    else store.select({ grouping: "source", row: id, label: location, detail: text, name: -1 });
  });
}

/** The name of an op; a click selects its row in the operators tab. @param {SlowOp} op @param {Store} store */
function opLink({ id, label, name }, store) {
  return link(label, `Open ${label} in Operators`, () => {
    store.emit("open", "operators");
    store.select({ grouping: "op", row: id, label, detail: "", name });
  });
}

/**
 * A location whose name is cut in the middle where it is long: the number of the line and the end of the name stay.
 * @param {string} location
 */
function shortened(location) {
  const cut = location.length - LONGEST + 1;
  const begin = Math.ceil((location.length - cut) / 3);
  return cut > 1 ? `${location.slice(0, begin)}…${location.slice(begin + cut)}` : location;
}

/** The time of a function with its error, as `functions()` writes it. @param {SlowFunction} one */
function estimate({ outside_ns, error_ns }) {
  return `~${duration(outside_ns)} ± ${error_ns === null ? "?" : duration(error_ns)}`;
}

/** @param {number} count */
const calls = (count) => `${number(count)} ${count === 1 ? "call" : "calls"}`;
