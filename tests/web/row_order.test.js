import assert from "node:assert/strict";
import { test } from "node:test";
import { sorted } from "#panel/web/tables/row_order.js";

const ROWS = {
  id: [4, 5, 6, 7],
  label: ["mm", "add", "relu", "add"],
  detail: ["", "", "", ""],
  value: { self_ns: [9, 5, 7, 5] },
};
const table = { number: (column, row) => ROWS.value[column][row] };
const named = (order) => order.map((row) => ROWS.label[row]);

test("rows are sorted by a column either way, and rows of one value by name both times", () => {
  assert.deepEqual(sorted(table, ROWS, { key: "self_ns", descending: true }), [0, 2, 1, 3]);
  assert.deepEqual(sorted(table, ROWS, { key: "self_ns", descending: false }), [1, 3, 2, 0]);
});

test("names are sorted either way, and rows of one name keep their order", () => {
  assert.deepEqual(sorted(table, ROWS, { key: "label", descending: false }), [1, 3, 0, 2]);
  assert.deepEqual(named(sorted(table, ROWS, { key: "label", descending: true })), ["relu", "mm", "add", "add"]);
});

test("what has no end comes after all that has one, and two of them are equal", () => {
  const ends = { number: (_, row) => [Number.POSITIVE_INFINITY, 3, Number.POSITIVE_INFINITY, 8][row] };

  assert.deepEqual(sorted(ends, ROWS, { key: "held_ns", descending: false }), [1, 3, 0, 2]);
  assert.deepEqual(sorted(ends, ROWS, { key: "held_ns", descending: true }), [0, 2, 3, 1]);
});

test("sorting leaves the rows where they are", () => {
  sorted(table, ROWS, { key: "self_ns", descending: true });

  assert.deepEqual(ROWS.label, ["mm", "add", "relu", "add"]);
});

test("a column of texts is sorted by its texts, or by its numbers where it has them", () => {
  const rows = { ...ROWS, text: { verdict: ["slower", "faster", "new", "faster"], self_ns: ["c", "a", "b", "d"] } };

  assert.deepEqual(named(sorted(table, rows, { key: "verdict", descending: false })), ["add", "add", "relu", "mm"]);
  assert.deepEqual(sorted(table, rows, { key: "self_ns", descending: true }), [0, 2, 1, 3]);
});
