import assert from "node:assert/strict";
import { test } from "node:test";
import { darkness, medianOfKnown } from "#panel/tabs/ranks/rank_matrix.js";

test("the median leaves out steps that a rank does not have", () => {
  assert.equal(medianOfKnown([-1, 30, 10, 20]), 20);
  assert.equal(medianOfKnown([10, 20]), 15);
  assert.equal(medianOfKnown([-1]), 0);
});

test("a cell is the darker, the longer its step took than the median", () => {
  assert.equal(darkness(10, 10), 0);
  assert.equal(darkness(15, 10), 0.5);
  assert.equal(darkness(40, 10), 1);
  assert.equal(darkness(5, 10), 0);
  assert.equal(darkness(-1, 10), 0);
});
