import assert from "node:assert/strict";
import { test } from "node:test";
import { Plane, shapeAt } from "#panel/web/drawing/plane.js";

const MARGIN = { left: 100, right: 100, top: 10, bottom: 40 };
const plane = new Plane(
  {},
  { width: 1_200, height: 250, margin: MARGIN, window: [2_000, 4_000], scroll: 0 },
  { font: "sans" },
);
const box = (x, width, label) => ({ x, y: 50, width, height: 20, label, describe: () => [label] });

test("moments and pixels are linear between the margins", () => {
  assert.equal(plane.x(2_000), 100);
  assert.equal(plane.x(3_000), 600);
  assert.equal(plane.ns(1_100), 4_000);
  assert.equal(plane.scale, 0.5);
});

test("what lies above or below the plane is not in view", () => {
  assert.deepEqual(
    [plane.shows(0, 10), plane.shows(0, 11), plane.shows(209, 5), plane.shows(210, 5)],
    [false, true, true, false],
  );
});

test("the pointer is on the shape that was drawn last", () => {
  const shapes = [box(100, 200, "below"), box(150, 10, "above")];

  assert.equal(shapeAt(shapes, 120, 55)?.label, "below");
  assert.equal(shapeAt(shapes, 155, 55)?.label, "above");
  assert.equal(shapeAt(shapes, 155, 75), null);
  assert.equal(shapeAt(shapes, 320, 55), null);
});

test("a shape too narrow to point at is found a little beside it, a wide one is not", () => {
  assert.equal(shapeAt([box(100, 0.1, "narrow")], 101.5, 60)?.label, "narrow");
  assert.equal(shapeAt([box(100, 0.1, "narrow")], 103, 60), null);
  assert.equal(shapeAt([box(100, 50, "wide")], 151, 60), null);
});
