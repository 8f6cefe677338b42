// The steps tab: a bar for each step, divided by phase, the median, and in what slow steps differ.

import { h, link } from "../../web/dom.js";
import { duration } from "../../web/format.js";
import { shortLocation } from "../../web/label.js";
import { phaseKey, phaseParts } from "../../web/strip.js";

/**
 * @import { Store } from "../../web/store.js"
 * @import { StepDifference, StepsFirst } from "./steps_types"
 * @import { TabContext, TabView } from "../../web/types/surroundings"
 */

const THINNED = "each bar is the longest of several steps";

/** @param {TabContext<StepsFirst>} context @returns {TabView} */
export function mount({ host, first, store }) {
  const keys = Object.keys(first.parts).map((part) => phaseKey(part, part));
  host.append(
    h(
      "div",
      { class: "mtprof-steps-scroll", tabindex: "0", role: "region", "aria-label": "Steps" },
      h("p", {
        class: "mtprof-summary-sentence",
        text: [first.sentence, ...(first.thinned ? [THINNED] : [])].join("; "),
      }),
      h("div", { class: "mtprof-line-keys", "aria-label": "Phases" }, ...keys),
      bars(first),
      h("h4", { class: "mtprof-summary-head", text: "Slow steps, and what takes longer in them" }),
      ...slowSteps(first, store),
    ),
  );
  return {};
}

/** Bars as high as the steps are long, and a line at the median. @param {StepsFirst} first */
function bars(first) {
  const longest = Math.max(...first.duration_ns, 1);
  const slow = new Set(first.slow.map(({ number }) => number));
  const columns = first.number.map((number, at) => bar(first, at, longest, slow.has(number)));
  const median = `bottom:${((first.median_ns / longest) * 100).toFixed(2)}%`;
  const label = `median ${duration(first.median_ns)}`;
  return h(
    "div",
    { class: "mtprof-steps-chart", role: "list", "aria-label": "Duration of each step" },
    ...columns,
    h("div", { class: "mtprof-steps-median", style: median, title: label }, h("span", { text: label })),
  );
}

/** @param {StepsFirst} first @param {number} at @param {number} longest @param {boolean} isSlow */
function bar({ number, duration_ns, parts }, at, longest, isSlow) {
  const times = Object.fromEntries(Object.entries(parts).map(([part, column]) => [part, column[at]]));
  const { spoken, parts: blocks } = phaseParts(times);
  const label = `Step ${number[at]}: ${duration(duration_ns[at])}${spoken ? ` (${spoken})` : ""}`;
  const height = `height:${((duration_ns[at] / longest) * 100).toFixed(2)}%`;
  const kind = `mtprof-step${isSlow ? " mtprof-step-slow" : ""}`;
  return h("div", { class: kind, role: "listitem", style: height, title: label, "aria-label": label }, ...blocks);
}

/** @param {StepsFirst} first @param {Store} store */
function slowSteps({ slow, median_ns }, store) {
  if (!slow.length)
    return [h("p", { class: "mtprof-summary-quiet", text: "No step takes 1.5 times the median or more." })];
  return slow.map(({ number, duration_ns, differences }) =>
    h(
      "div",
      { class: "mtprof-slow-step" },
      h("b", { text: `Step ${number}` }),
      ` ${duration(duration_ns)}, ${(duration_ns / Math.max(median_ns, 1)).toFixed(1)} × the median`,
      ...differences.map((one) => difference(one, store)),
    ),
  );
}

/** @param {StepDifference} one @param {Store} store */
function difference({ id, location, ns, usual_ns }, store) {
  const label = shortLocation(location);
  const onclick = () => {
    store.emit("open", "lines");
    store.select({ grouping: "source", row: id, label, detail: "", name: -1 });
  };
  const name = id < 0 ? h("span", { text: location }) : link(label, `Open ${location} in Lines`, onclick);
  return h("div", { class: "mtprof-step-difference" }, name, ` ${duration(ns)} instead of ${duration(usual_ns)}`);
}
