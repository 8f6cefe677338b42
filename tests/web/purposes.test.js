import assert from "node:assert/strict";
import { test } from "node:test";
import "./canvas.js";

const { stacked } = await import("#panel/tabs/memory/purposes.js");

test("purposes stand one above the other", () => {
  const purposes = [{ nbytes: [1, 2, 0] }, { nbytes: [5, 0, 5] }];

  assert.deepEqual(stacked(purposes), [
    [1, 2, 0],
    [6, 2, 5],
  ]);
});
