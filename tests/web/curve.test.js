import assert from "node:assert/strict";
import { test } from "node:test";
import "./canvas.js";
import { byteTicks, heldAt, isOf, stacked } from "#panel/tabs/memory/curve.js";
import { Plane } from "#panel/web/drawing/plane.js";

const MARGIN = { left: 0, right: 0, top: 0, bottom: 0 };
const plane = new Plane(
  {},
  { width: 1_000, height: 118, margin: MARGIN, window: [0, 1_000], scroll: 0 },
  { font: "sans" },
);
const curve = (title, nbytes) => ({
  title,
  time_ns: [100, 500],
  nbytes,
  change: [0, nbytes[1] - nbytes[0]],
  event: [-1, 4],
  name: [-1, 2],
  line: [-1, 0],
  peak: { time_ns: 500, nbytes: Math.max(...nbytes) },
  kinds: [
    { title: "gradient", nbytes: nbytes.map((count) => count - 512) },
    { title: "unknown", nbytes: [512, 512] },
  ],
});
const DRAWN = {
  curves: [curve("cpu", [1_024, 5_120]), curve("cuda:0", [0, 512])],
  texts: { names: { 2: "aten::mm" }, shapes: {}, lines: { 0: "m.py:3" } },
};

test("ticks are round numbers of bytes", () => {
  assert.deepEqual(
    byteTicks(10 * 2 ** 20),
    [0, 2, 4, 6, 8, 10].map((count) => count * 2 ** 20),
  );
  assert.deepEqual(byteTicks(0), [0]);
});

test("a moment belongs to the last change before it", () => {
  const held = [99, 100, 499, 500, 900].map((x) => heldAt(plane, DRAWN, x, 10)?.describe()[0].split(" on")[0]);

  assert.deepEqual(held, [undefined, "1.00 KiB", "1.00 KiB", "5.00 KiB", "5.00 KiB"]);
});

test("the pointer tells time, bytes, the change before it, its op and its line", () => {
  const found = heldAt(plane, DRAWN, 700, 10);

  assert.deepEqual(found.describe(), [
    "5.00 KiB on cpu, at 0.700 µs",
    "+4.00 KiB by aten::mm, at 0.500 µs",
    "m.py:3",
    "unknown 512 B",
    "gradient 4.50 KiB",
  ]);
  assert.deepEqual(found.picks, { event: 4, name: 2, line: 0 });
});

test("of two curves the one nearer to the pointer is told, and before the first change none", () => {
  assert.equal(heldAt(plane, DRAWN, 700, 110).describe()[0], "512 B on cuda:0, at 0.700 µs");
  assert.equal(heldAt(plane, DRAWN, 50, 10), null);
  assert.equal(heldAt(plane, DRAWN, 300, 100).picks, undefined);
});

test("a selected line, or op, marks its changes", () => {
  const columns = { name: [2, 3, 2, -1], line: [0, 0, 1, -1] };
  const marked = (selection) => columns.name.map((_, at) => isOf(columns, selection)(at));

  assert.deepEqual(marked({ grouping: "source", row: 0, name: -1 }), [true, true, false, false]);
  assert.deepEqual(marked({ grouping: "op", row: 7, name: 2 }), [true, false, true, false]);
  assert.deepEqual(marked({ grouping: "scope", row: 7, name: -1 }), [false, false, false, false]);
  assert.deepEqual(marked(null), [false, false, false, false]);
});

test("kinds of memory stand one above the other", () => {
  const kinds = [
    { title: "gradient", nbytes: [1, 2, 0] },
    { title: "unknown", nbytes: [5, 0, 5] },
  ];

  assert.deepEqual(stacked(kinds), [
    { title: "gradient", nbytes: [1, 2, 0] },
    { title: "unknown", nbytes: [6, 2, 5] },
  ]);
});
