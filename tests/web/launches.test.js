import assert from "node:assert/strict";
import { test } from "node:test";
import { launchesOf, linkedTo } from "#panel/tabs/timeline/launches.js";

/** Op 1 holds op 2, whose call 3 launched kernel 9; op 4 itself launched kernel 8. */
const LAUNCHES = {
  kernel: [9, 8],
  call: [3, 4],
  owner: [2, 4],
  from_row: [2, 0],
  from_ns: [30, 40],
  to_row: [5, 5],
  to_ns: [90, 80],
  within: { event: [1, 2, 3, 4], parent: [-1, 1, 2, -1] },
};

test("a kernel has the arrow to it", () => {
  assert.deepEqual(launchesOf(8, LAUNCHES), { from_row: [0], from_ns: [40], to_row: [5], to_ns: [80], total: 1 });
});

test("an op has the arrows of all calls inside it", () => {
  for (const op of [1, 2, 3]) assert.deepEqual(launchesOf(op, LAUNCHES).to_ns, [90]);
  assert.equal(launchesOf(7, LAUNCHES).total, 0);
});

test("what a selected op launched is linked to it, with the call", () => {
  assert.deepEqual([...linkedTo(LAUNCHES, (event) => event === 1)].sort(), [3, 9]);
});

test("the op of a selected kernel is linked to it, with the call", () => {
  assert.deepEqual([...linkedTo(LAUNCHES, (event) => event === 9)].sort(), [2, 3, 9]);
  assert.deepEqual([...linkedTo(LAUNCHES, () => false)], []);
});
