import assert from "node:assert/strict";
import { test } from "node:test";
import "./canvas.js";
import { paintArrows, paintGaps } from "#panel/tabs/timeline/device_marks.js";
import { LaneRows } from "#panel/web/drawing/lanes.js";
import { Plane } from "#panel/web/drawing/plane.js";

const MARGIN = { left: 0, right: 0, top: 0, bottom: 0 };
const CAUSES = [
  { title: "idle: host late", colour: "#ff0000" },
  { title: "idle: kernel to kernel", colour: "#00ff00" },
];
const ROWS = new LaneRows([
  { title: "main", top: 0, bottom: 2, rows: 2, rows_top: 0 },
  { title: "stream 7", top: 3, bottom: 5, rows: 1, rows_top: 4 },
]);

/** A plane that notes what is drawn on it. */
function plane() {
  const calls = [];
  const context = new Proxy(
    {},
    {
      get:
        (_, name) =>
        (...args) =>
          calls.push([name, ...args]),
      set: (_, name, value) => calls.push([name, value]),
    },
  );
  const place = { width: 1_000, height: 200, margin: MARGIN, window: [0, 1_000], scroll: 0 };
  return { calls, on: new Plane(context, place, { font: "sans", text: "#222222" }) };
}

/** A gap of 100 ns, and 60 + 20 ns of gaps within 100 ns. */
const GAPS = {
  lane: [1, 1, 1],
  start_ns: [100, 400, 400],
  length_ns: [100, 100, 100],
  cause: [0, 0, 1],
  count: [1, 5, 2],
  time_ns: [100, 60, 20],
};

test("a gap fills the ribbon of its lane; of gaps together, each cause has its share of the height", () => {
  ROWS.fit(100);
  const { on } = plane();
  paintGaps(on, ROWS, { gaps: GAPS }, CAUSES);
  const [alone, lower, upper] = on.shapes;

  assert.equal(ROWS.rowPixels, 20);
  assert.deepEqual([alone.x, alone.width, alone.height], [100, 100, 12]);
  assert.deepEqual([lower.height.toFixed(2), upper.height.toFixed(2)], ["7.20", "2.40"]);
  assert.equal((upper.y + upper.height).toFixed(3), lower.y.toFixed(3));
  assert.equal((lower.y + lower.height).toFixed(3), (alone.y + alone.height).toFixed(3));
});

test("a gap tells its cause and its length", () => {
  const { on } = plane();
  paintGaps(on, ROWS, { gaps: GAPS }, CAUSES);

  assert.deepEqual(on.shapes[0].describe(), ["idle: host late", "0.100 µs"]);
  assert.deepEqual(on.shapes[2].describe(), ["idle: kernel to kernel", "2 gaps, 0.020 µs in 0.100 µs"]);
});

test("an arrow leads from the row of the call to the row of the kernel", () => {
  const { on, calls } = plane();
  paintArrows(on, ROWS, { from_row: [1], from_ns: [50], to_row: [2], to_ns: [400] });
  const [, fromX, fromY] = calls.find(([name]) => name === "moveTo");
  const curve = calls.find(([name]) => name === "bezierCurveTo");

  assert.deepEqual([fromX, fromY], [50, 37]);
  assert.deepEqual(curve.slice(-2), [400, 83]);
});

test("many arrows are paler than few", () => {
  const alphas = [1, 100].map((count) => {
    const { on, calls } = plane();
    const column = Array.from({ length: count }, () => 1);
    paintArrows(on, ROWS, { from_row: column, from_ns: column, to_row: column, to_ns: column });
    return calls.find(([name]) => name === "globalAlpha")[1];
  });

  assert.ok(alphas[1] < alphas[0]);
});
