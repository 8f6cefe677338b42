import assert from "node:assert/strict";
import { test } from "node:test";
import "./canvas.js";
import { lineColumns, ranked } from "#panel/tabs/lines/listing_rows.js";

const LINES = [
  { line: { line: 1, text: "import torch" } },
  { line: { line: 2, time_ns: 5, total_ns: 50, count: 3, bytes: null } },
  { line: { line: 3, time_ns: 9, total_ns: 9, count: 3, bytes: 64 } },
  { line: { line: 4, time_ns: 7, total_ns: 7 } },
];
const numbers = (key) => ranked(LINES, key).map(({ line }) => line.line);

test("lines are ranked by a column, without those that have nothing there; equal ones stay in order", () => {
  assert.deepEqual(numbers("time_ns"), [3, 4, 2]);
  assert.deepEqual(numbers("total_ns"), [2, 3, 4]);
  assert.deepEqual(numbers("count"), [2, 3]);
  assert.deepEqual(numbers("bytes"), [3]);
});

/** Columns of the lines tab whose only file has one line with these costs. */
const titles = (line, facts) =>
  lineColumns({ whole_ns: 1, files: [{ lines: [null, line] }], rest: [], ...facts }).map(({ title }) => title);

test("every column can be ranked by", () => {
  const memory = { title: "Allocated", meaning: "bytes" };
  const line = { time_ns: 1, outside_ns: 1, total_ns: 1, count: 1, device_ns: 1, bytes: 1 };
  const columns = lineColumns({ outside: "outside ops", whole_ns: 1, memory, files: [{ lines: [line] }], rest: [] });

  assert.deepEqual(
    columns.map(({ title, rank }) => `${title} ${rank}`),
    [
      "Time time_ns",
      "Share time_ns",
      "Outside outside_ns",
      "Total total_ns",
      "Ops count",
      "Device device_ns",
      "Allocated bytes",
    ],
  );
});

test("a column without a number on any line is left out", () => {
  const memory = { title: "Memory", meaning: "bytes" };
  const outside = "outside ops";
  const line = { time_ns: 5, outside_ns: 0, total_ns: 5, count: 1, device_ns: null, bytes: 0 };

  assert.deepEqual(titles(line, { outside, memory }), ["Time", "Share", "Total", "Ops"]);
  assert.deepEqual(titles({ ...line, bytes: -8 }, { outside, memory }), ["Time", "Share", "Total", "Ops", "Memory"]);
  assert.deepEqual(titles({ ...line, outside_ns: 2, bytes: null }, { outside, memory }), [
    ...["Time", "Share", "Outside", "Total", "Ops"],
  ]);
});
