import assert from "node:assert/strict";
import { test } from "node:test";
import { csv, markdown } from "#panel/web/tables/clipboard.js";

test("listed rows are written as CSV in their order, with the columns that have values", () => {
  const columns = ["count", "share", "self_ns"].map((key) => ({ key, title: key, unit: "count", meaning: "" }));
  const rows = { id: [1, 2], label: ["mm", 'a,"b"'], detail: ["", "x"], value: { count: [2, 1], self_ns: [30, 40] } };

  assert.equal(csv(columns, rows, [1, 0]), 'name,detail,count,self_ns\n"a,""b""",x,1,40\nmm,,2,30\n');
});

test("listed rows are written as a table of Markdown, in the units of the panel", () => {
  const columns = [
    { key: "count", title: "Calls", unit: "count", meaning: "" },
    { key: "self_ns", title: "Self", unit: "time", meaning: "" },
    { key: "share", title: "Share", unit: "share", meaning: "", of: "self_ns" },
  ];
  const rows = { id: [1, 2], label: ["mm", "a|`b`"], detail: ["", "x"], value: { count: [2, 1], self_ns: [3e4, 1e4] } };

  assert.equal(
    markdown(columns, rows, [1, 0], { self_ns: 4e4 }),
    "| Name | Calls | Self | Share |\n| --- | ---: | ---: | ---: |\n" +
      "| `a\\|'b'` `x` | 1 | 10.0 µs | 25.0 % |\n| `mm` | 2 | 30.0 µs | 75.0 % |\n",
  );
});
