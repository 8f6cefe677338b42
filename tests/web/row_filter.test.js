import assert from "node:assert/strict";
import { test } from "node:test";
import { rowFilter } from "#panel/web/tables/row_filter.js";

const ROWS = {
  id: [1, 2, 3],
  label: ["aten::mm", "aten::addmm", "relu"],
  detail: ["[2, 3]", "", "Cell [1]:4"],
  value: {},
};
const kept = (text, regex = false) => {
  const { matches, problem } = rowFilter(ROWS, { text, regex });
  return [ROWS.id.filter((_, row) => matches(row)), problem];
};

test("a text is searched in name and detail, in any case, and taken literally", () => {
  assert.deepEqual(kept(""), [[1, 2, 3], ""]);
  assert.deepEqual(kept("MM"), [[1, 2], ""]);
  assert.deepEqual(kept("cell [1]"), [[3], ""]);
  assert.deepEqual(kept("m{2}"), [[], ""]);
});

test("a regular expression is one only where it is asked for", () => {
  assert.deepEqual(kept("::m{2}$", true), [[1], ""]);
});

test("an expression that does not compile keeps all rows and says why", () => {
  const [rows, problem] = kept("a(", true);

  assert.deepEqual(rows, [1, 2, 3]);
  assert.match(problem, /Unterminated group/);
});
