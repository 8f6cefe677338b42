import assert from "node:assert/strict";
import { test } from "node:test";
import { between, laidOut, litByName, litByRows, withCallers } from "#panel/tabs/stacks/slices.js";

/** A root of 100 that called b (60, which called c: 15) and a (25). */
const SLICES = { parent: [-1, 0, 0, 2], total: [100, 25, 60, 15], name: [-1, 7, 8, 7] };

test("callees stand side by side below their caller, the largest first", () => {
  const { places, callees, levels } = laidOut(SLICES);

  assert.deepEqual(callees, [[2, 1], [], [3], []]);
  assert.deepEqual(places, [
    { level: 0, begin: 0, end: 1 },
    { level: 1, begin: 0.6, end: 0.85 },
    { level: 1, begin: 0, end: 0.6 },
    { level: 2, begin: 0, end: 0.15 },
  ]);
  assert.equal(levels, 3);
});

test("a slice without size has a place too", () => {
  assert.deepEqual(laidOut({ parent: [-1], total: [0] }).places, [{ level: 0, begin: 0, end: 0 }]);
});

test("callers are followed up to the root", () => {
  assert.deepEqual(withCallers(SLICES, 3), [3, 2, 0]);
});

test("slices of a name are lit, and the way to them a little", () => {
  assert.deepEqual(litByName(SLICES, 7), [1, 2, 1, 2]);
  assert.deepEqual(litByName(SLICES, 8), [1, 0, 2, 0]);
  assert.deepEqual(litByName(SLICES, 9), [0, 0, 0, 0]);
});

test("slices of chosen rows are lit, and what is above their events that are not drawn a little", () => {
  const pairs = { own: { row: [4, 5, 5], of: [1, 2, 3] }, below: { row: [4, 6], of: [3, 2] } };

  assert.deepEqual(litByRows(SLICES, pairs, new Set([4])), [1, 2, 1, 1]);
  assert.deepEqual(litByRows(SLICES, pairs, new Set([5])), [1, 0, 2, 2]);
  assert.deepEqual(litByRows(SLICES, pairs, new Set([6])), [1, 0, 1, 0]);
  assert.deepEqual(litByRows(SLICES, pairs, new Set([5, 6])), [1, 0, 2, 2]);
  assert.deepEqual(litByRows(SLICES, pairs, new Set()), [0, 0, 0, 0]);
});

test("a zoom passes through the places between", () => {
  assert.deepEqual(between({ level: 0, begin: 0, end: 1 }, { level: 2, begin: 0.5, end: 0.75 }, 0.5), {
    level: 1,
    begin: 0.25,
    end: 0.875,
  });
});
