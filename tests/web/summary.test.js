import assert from "node:assert/strict";
import { test } from "node:test";
import "./canvas.js";
import { nameCell } from "#panel/web/tables/table.js";
import { mount } from "#panel/tabs/summary/summary.js";

const NOTHING = {
  sentence: "",
  on: "",
  lines: [],
  ops: [],
  functions: [],
  waits: [],
  compilations: [],
  breaks: [],
  findings: [],
  nothing: "",
  notes: [],
};

/** The entries of a list of the overview, as they are read. */
function entries(label, first) {
  const host = document.createElement("div");
  mount({ host, first: { ...NOTHING, ...first }, store: {} });
  return host
    .having("aria-label", label)[0]
    .having("role", "listitem")
    .map(({ textContent }) => textContent);
}

test("the source of a line is shown as it was written: its slashes divide", () => {
  const line = { id: 0, location: "Cell [3]:4", text: "b = (a @ a) / ratio / 2", time_ns: 5_000, share: "10.0 %" };
  assert.deepEqual(entries("Hottest lines", { lines: [line] }), ["Cell [3]:4 b = (a @ a) / ratio / 25.00 µs10.0 %"]);
});

test("a function has its file without folders, and its error", () => {
  const one = { label: "load", location: "/my data/sets.py:7", outside_ns: 5_000, error_ns: 900, share: "10 %" };
  const shown = entries("Hottest functions, outside ops", { functions: [one, { ...one, error_ns: null }] });
  assert.deepEqual(shown, ["load sets.py:7~5.00 µs ± 0.900 µs10 %", "load sets.py:7~5.00 µs ± ?10 %"]);
});

test("the cell of a name shows the detail that it is given, and has all of it as its title", () => {
  const cell = nameCell("aten::mm", "aten::mm", "/home/me/model.py:12", "model.py:12");
  assert.equal(cell.textContent, "aten::mmmodel.py:12");
  assert.equal(cell.attributes.title, "aten::mm\n/home/me/model.py:12");
});
