import assert from "node:assert/strict";
import { test } from "node:test";
import { csv } from "#panel/tables/clipboard.js";

test("listed rows are written as CSV in their order, with the columns that have values", () => {
  const columns = ["count", "share", "self_ns"].map((key) => ({ key, title: key, unit: "count", meaning: "" }));
  const rows = { id: [1, 2], label: ["mm", 'a,"b"'], detail: ["", "x"], value: { count: [2, 1], self_ns: [30, 40] } };

  assert.equal(csv(columns, rows, [1, 0]), 'name,detail,count,self_ns\n"a,""b""",x,1,40\nmm,,2,30\n');
});
