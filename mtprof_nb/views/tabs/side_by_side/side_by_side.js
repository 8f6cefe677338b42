// The tab of changed lines: both versions of a file side by side, with the time of each line.

import { h } from "../../web/dom.js";
import { duration } from "../../web/format.js";
import { SIDES } from "../differences/dots.js";

/**
 * @import { FileVersions, LineVersion, SideBySideFirst, VersionRow } from "../differences/comparison_types"
 * @import { TabContext, TabView } from "../../web/types/surroundings"
 */

/** @param {TabContext<SideBySideFirst>} context @returns {TabView} */
export function mount({ host, first }) {
  const files = first.files.map((file) => fileOf(file, first));
  const listing = h(
    "div",
    { class: "mtprof-versions", role: "table", tabindex: "0", "aria-label": "Changed lines" },
    ...files,
  );
  host.append(h("div", { class: "mtprof-stage" }, listing));
  return {};
}

/** @param {FileVersions} file @param {SideBySideFirst} first */
function fileOf({ a_title, b_title, rows }, { labels, largest_ns }) {
  const titles = [a_title, b_title].map((title, side) =>
    h("div", { class: "mtprof-version-title", role: "columnheader" }, h("b", { text: labels[side] }), ` ${title}`),
  );
  const lines = rows.map((row) =>
    row ? lineOf(row, largest_ns) : h("div", { class: "mtprof-version-gap", role: "row", text: "…" }),
  );
  const head = h("div", { class: "mtprof-version mtprof-version-head", role: "row" }, ...titles);
  return h("div", { class: "mtprof-version-file", role: "rowgroup" }, head, ...lines);
}

/** @param {VersionRow} row @param {number} largest */
function lineOf({ a, b, change }, largest) {
  const kind = change ? ` mtprof-is-${change}` : "";
  const halves = [a, b].map((version, side) => halfOf(version, side, largest));
  return h("div", { class: `mtprof-version${kind}`, role: "row", title: change || null }, ...halves);
}

/** @param {LineVersion | null} version @param {number} side @param {number} largest */
function halfOf(version, side, largest) {
  if (!version) return h("div", { class: "mtprof-half mtprof-half-none", role: "cell" });
  const { number, text, ns } = version;
  const part = ns && largest ? ns / largest : 0;
  const time = h("span", { class: "mtprof-half-time", text: ns === null ? "" : duration(ns) });
  time.style.setProperty("--mtprof-part", part.toFixed(4));
  time.style.setProperty("--mtprof-heat", SIDES[side]);
  return h(
    "div",
    { class: "mtprof-half", role: "cell" },
    h("span", { class: "mtprof-line-at", text: String(number) }),
    h("span", { class: "mtprof-line-text", text, title: text }),
    time,
  );
}
