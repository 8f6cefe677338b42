import assert from "node:assert/strict";
import { test } from "node:test";
import { lineColumns, ranked } from "#panel/tables/listing_rows.js";

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

test("every column can be ranked by, and a narrow panel keeps time, share and device", () => {
  const memory = { title: "Allocated", meaning: "bytes" };
  const columns = lineColumns({ outside: "outside ops", whole_ns: 1, largest_device_ns: 1, memory });

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
  assert.deepEqual(
    columns.filter(({ isMinor }) => !isMinor).map(({ title }) => title),
    ["Time", "Share", "Device"],
  );
});
