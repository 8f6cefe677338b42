import assert from "node:assert/strict";
import { test } from "node:test";
import { ofRows, rowOf, rowsOf, withSubmodules } from "#panel/web/event_rows.js";

const EVENTS = { event: [3, 9, 12], row: [1, 2, -1] };
const PAIRS = { row: [0, 0, 1, 2], of: [7, 8, 7, 9] };

test("events have their rows, and those that are not known have none", () => {
  assert.deepEqual(
    [3, 9, 12, 4, 99].map((event) => rowOf(EVENTS, event)),
    [1, 2, -1, -1, -1],
  );
});

test("chosen rows have their lines, and a line has its rows", () => {
  assert.deepEqual([...ofRows(PAIRS, new Set([0, 2]))], [7, 8, 9]);
  assert.deepEqual([...ofRows(PAIRS, new Set())], []);
  assert.deepEqual(rowsOf(PAIRS, 7), [0, 1]);
  assert.deepEqual(rowsOf(PAIRS, 5), []);
});

test("a module has its submodules, and not those of a longer name", () => {
  const rows = { id: [4, 5, 6], label: ["Net", "Net.first", "Network"] };

  assert.deepEqual([withSubmodules(rows, 0), withSubmodules(rows, 1)], [[4, 5], [5]]);
});
