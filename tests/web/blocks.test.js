import assert from "node:assert/strict";
import { test } from "node:test";
import "./canvas.js";
import { barsOf, paintCollections } from "#panel/tabs/timeline/blocks.js";
import { LaneRows } from "#panel/web/drawing/lanes.js";
import { Plane } from "#panel/web/drawing/plane.js";

const MARGIN = { left: 0, right: 0, top: 0, bottom: 0 };
const MEANING = { families: [{ title: "matrix product", colour: "#111111" }, { title: "view" }], has_steps: false };
const ROWS = new LaneRows([{ title: "main", top: 0, bottom: 2, rows: 2, rows_top: 0 }]);
const on = (window) =>
  new Plane({}, { width: 1_000, height: 100, margin: MARGIN, window, scroll: 0 }, { font: "sans" });

/** An op of 300 ns; a block of nine events in 100 ns, busy for 60 + 20 ns with two families. */
const DRAWN = {
  blocks: { row: [0, 1], start_ns: [100, 600], length_ns: [300, 100], count: [1, 9], time_ns: [300, 80], lit: null },
  bars: {
    block: [0, 1, 1],
    family: [0, 0, 1],
    count: [1, 6, 3],
    time_ns: [300, 60, 20],
    event: [0, 5, 6],
    name: [0, 0, 1],
    took_ns: [300, 12, 9],
    self_ns: [200, 12, 9],
    phase: [1, 0, 0],
    step: [0, 0, 0],
    op: [-1, -1, -1],
    shape: [0, -1, -1],
    line: [2, -1, -1],
  },
  texts: { names: { 0: "aten::mm", 1: "aten::t" }, shapes: { 0: "[2, 3]" }, lines: { 2: "m.py:7" } },
};
const bars = (window) => barsOf(on(window), ROWS, DRAWN, MEANING, () => true);

test("an event fills its row from its start, as long as it took, but for a gap to the next", () => {
  ROWS.fit(36);
  const [{ x, y, width, height, picks }] = bars([0, 1_000]);

  assert.equal(ROWS.rowPixels, 18);
  assert.deepEqual([x, width], [100, 299]);
  assert.deepEqual([y.toFixed(2), height.toFixed(2)], ["1.08", "15.84"]);
  assert.deepEqual(picks, { event: 0, name: 0, line: 2 });
});

test("in a block of many the height of a family is its share of the time, one above the other", () => {
  const [, lower, upper] = bars([0, 1_000]);

  assert.deepEqual([lower.height.toFixed(3), upper.height.toFixed(3)], ["9.504", "3.168"]);
  assert.equal((upper.y + upper.height).toFixed(3), lower.y.toFixed(3));
  assert.equal((lower.y + lower.height).toFixed(2), (18 + 16.92).toFixed(2));
});

test("no bar is wider than its event was long, however far it is zoomed out", () => {
  const [event] = bars([0, 1_000_000_000]);

  assert.equal(event.width.toFixed(6), "0.000300");
});

test("what is out of view is left out", () => {
  assert.deepEqual(
    bars([500, 550]).map(({ bar }) => bar),
    [],
  );
  assert.deepEqual(
    bars([550, 650]).map(({ bar }) => bar),
    [1, 2],
  );
});

test("an event tells its name, times, phase, inputs and line", () => {
  assert.deepEqual(bars([0, 1_000])[0].describe(), [
    "aten::mm",
    "0.300 µs (self 0.200 µs), at 0.100 µs",
    "backward",
    "inputs [2, 3]",
    "m.py:7",
  ]);
});

test("a kernel tells the op that launched it", () => {
  const kernel = { ...DRAWN, bars: { ...DRAWN.bars, op: [1, -1, -1] } };
  const [bar] = barsOf(on([0, 1_000]), ROWS, kernel, MEANING, () => true);

  assert.equal(bar.describe()[2], "launched by aten::t");
});

test("a block of many tells how many, their time, and the longest", () => {
  assert.deepEqual(bars([0, 1_000])[2].describe(), [
    "9 events, 0.080 µs in 0.100 µs",
    "view: 3 events, 0.020 µs",
    "longest aten::t, 0.009 µs",
    "zoom in to tell them apart",
  ]);
});

test("a few rows are drawn taller, and many rows keep a height that can be read", () => {
  ROWS.fit(1_000);
  assert.equal(ROWS.rowPixels, 30);
  ROWS.fit(10);
  assert.deepEqual([ROWS.rowPixels, ROWS.height], [18, 36]);
});

test("a garbage collection is marked over the height of its lane, a pixel wide at least", () => {
  ROWS.fit(36);
  const plane = on([0, 1_000_000]);
  const painted = [];
  Object.assign(plane.context, { save() {}, restore() {}, fillRect: (...box) => painted.push(box) });
  const collections = { lane: [0, 0, 0], start_ns: [1_000, 500_000, 2_000_000], length_ns: [10, 12_300, 5] };
  paintCollections(plane, ROWS, { ...collections, generation: [0, 2, 1] });

  assert.deepEqual(
    painted.map(([x, y, width, height]) => [x, y, width.toFixed(1), height]),
    [
      [1, 0, "1.0", 36],
      [500, 0, "12.3", 36],
    ],
  );
  assert.deepEqual(
    plane.shapes.map(({ describe }) => describe()),
    [["garbage collection, generation 0, 0.010 µs"], ["garbage collection, generation 2, 12.3 µs"]],
  );
});
