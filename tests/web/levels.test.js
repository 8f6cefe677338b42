import assert from "node:assert/strict";
import { test } from "node:test";
import { Levels } from "#panel/tabs/timeline/levels.js";
import { firstWhere } from "#panel/web/first_where.js";

/** Two rows: one of short blocks 10 ns apart with a long one between, and one of a single block. */
const BLOCKS = {
  row: [0, 0, 0, 0, 0, 1],
  start_ns: [100, 110, 120, 200, 300, 105],
  length_ns: [5, 5, 5, 64, 5, 2],
};
const levels = new Levels(BLOCKS);

test("near enough, every block is drawn apart", () => {
  const { runs, merged_ns } = levels.window(0, 400, 400, 100);

  assert.deepEqual(runs, [
    [0, 1],
    [1, 2],
    [2, 3],
    [3, 4],
    [4, 5],
    [5, 6],
  ]);
  assert.equal(merged_ns, 1);
});

test("neighbours shorter than a pixel become one, a long block and another row stay apart", () => {
  const { runs, merged_ns } = levels.window(0, 400, 10, 100);

  assert.equal(merged_ns, 32);
  assert.deepEqual(runs, [
    [0, 3],
    [3, 4],
    [4, 5],
    [5, 6],
  ]);
});

test("longer blocks are merged as far as the limit demands, and rows never", () => {
  assert.deepEqual(levels.window(0, 400, 400, 2).runs, [
    [0, 5],
    [5, 6],
  ]);
  assert.equal(levels.window(0, 400, 400, 1).runs.length, 2);
});

test("only what touches the window is there", () => {
  assert.deepEqual(levels.window(116, 199, 100, 100).runs, [[2, 3]]);
  assert.deepEqual(levels.window(400, 500, 100, 100).runs, []);
});

test("the first number that passes is found", () => {
  assert.equal(
    firstWhere(0, 10, (at) => at * at >= 30),
    6,
  );
  assert.equal(
    firstWhere(3, 10, () => false),
    10,
  );
});
