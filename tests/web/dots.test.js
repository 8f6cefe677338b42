import assert from "node:assert/strict";
import { test } from "node:test";
import "./canvas.js";

const { placesOf, scaleOf } = await import("#panel/tabs/differences/dots.js");
const { median } = await import("#panel/web/median.js");

test("the median is in the middle, or between the two in the middle", () => {
  assert.equal(median([5, 1, 3]), 3);
  assert.equal(median([4, 1, 3, 2]), 2.5);
  assert.equal(median([]), 0);
});

test("the axis reaches from the shortest to the longest time of both sides", () => {
  const [low, high] = scaleOf({ unit: "step", a: [[100, 200]], b: [[300], [150]] });

  assert.equal(low, 97);
  assert.equal(high, 309);
});

test("a time that is very long does not make the others small", () => {
  const [, high] = scaleOf({ unit: "step", a: [[100, 100, 100, 90_000]], b: [[100, 110, 120]] });

  assert.equal(high, 1.03 * 250);
});

test("each run takes an equal part of the width", () => {
  const places = placesOf([[7, 8], [9]]);

  assert.deepEqual(
    places.map(({ place, ns, run }) => [place, ns, run]),
    [
      [0.125, 7, 0],
      [0.375, 8, 0],
      [0.75, 9, 1],
    ],
  );
});
