import assert from "node:assert/strict";
import { test } from "node:test";
import { moved, within, zoomed } from "#panel/web/drawing/time_window.js";

test("a window stays inside the recording, and keeps its length where it can", () => {
  assert.deepEqual(within([200, 400], 1_000), [200, 400]);
  assert.deepEqual(within([-100, 100], 1_000), [0, 200]);
  assert.deepEqual(within([900, 1_100], 1_000), [800, 1_000]);
  assert.deepEqual(within([-500, 5_000], 1_000), [0, 1_000]);
});

test("a window is not shorter than can be told apart, unless the recording is", () => {
  assert.deepEqual(within([500, 501], 1_000), [500, 550]);
  assert.deepEqual(within([3, 4], 10), [0, 10]);
});

test("a zoom keeps the moment under the pointer in its place", () => {
  assert.deepEqual(zoomed([100, 300], 0.5), [150, 250]);
  assert.deepEqual(zoomed([100, 300], 2, 0), [100, 500]);
  assert.deepEqual(zoomed([100, 300], 0.5, 1), [200, 300]);
});

test("a window moves by a part of its length", () => {
  assert.deepEqual(moved([100, 300], 0.5), [200, 400]);
  assert.deepEqual(moved([100, 300], -1), [-100, 100]);
});
