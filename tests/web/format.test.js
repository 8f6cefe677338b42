import assert from "node:assert/strict";
import { test } from "node:test";
import { csvLine, digits, duration, flops, nbytes, number, share, timeTicks, writers } from "#panel/web/format.js";

test("three significant digits, and never a fourth by rounding", () => {
  const written = [0, 0.0004, 0.5, 1, 9.994, 9.996, 99.96, 999.4, 999.6, 12_345].map(digits);

  assert.deepEqual(written, ["0", "0.000", "0.500", "1.00", "9.99", "10.0", "100", "999", "1,000", "12,300"]);
});

test("a duration has the unit in which it is below a thousand", () => {
  const written = [0, 250, 999_499, 999_500, 1_000_000, 1_500_000_000, 2e12].map(duration);

  assert.deepEqual(written, ["0 µs", "0.250 µs", "999 µs", "1.00 ms", "1.00 ms", "1.50 s", "2,000 s"]);
});

test("a negative amount has a minus sign, not a hyphen", () => {
  assert.equal(duration(-2_000), "\u22122.00 µs");
  assert.equal(nbytes(-1_536), "\u22121.50 KiB");
});

test("whole bytes are counted, larger sizes are scaled by 1024", () => {
  assert.deepEqual([0, 1, 999, 1_024, 5 * 2 ** 20].map(nbytes), ["0 B", "1 B", "999 B", "1.00 KiB", "5.00 MiB"]);
});

test("no formula of FLOPs is a dash", () => {
  assert.deepEqual([0, 512, 2e9].map(flops), ["–", "512 FLOP", "2.00 GFLOP"]);
});

test("thousands of a count are set apart", () => {
  assert.equal(number(1_234_567), "1,234,567");
});

test("a share that is not nothing is never written as 0", () => {
  assert.deepEqual(
    [share(0, 8), share(1, 10_000), share(1, 8), share(8, 8), share(1, 0)],
    ["0 %", "<0.1 %", "12.5 %", "100.0 %", "–"],
  );
});

test("memory that is never released is held to the end", () => {
  assert.deepEqual([writers.held(Number.POSITIVE_INFINITY), writers.held(3e6)], ["to the end", "3.00 ms"]);
});

test("a small ratio has more decimals", () => {
  assert.deepEqual([0.0002, 0.0128, 0.5, 12.34].map(writers.ratio), ["<0.001", "0.013", "0.50", "12.3"]);
});

test("a line of CSV quotes what must be quoted, and disarms formulas", () => {
  assert.equal(csvLine(["aten::mm", 12, "a,b", 'say "x"']), 'aten::mm,12,"a,b","say ""x"""');
  assert.equal(csvLine(["=1+1", "@x", -5, "-5"]), "'=1+1,'@x,-5,'-5");
});

test("ticks are round, and in the unit of the window", () => {
  const { values, text } = timeTicks(0, 0.01, 5);

  assert.deepEqual(text, ["0 ms", "2 ms", "4 ms", "6 ms", "8 ms", "10 ms"]);
  assert.deepEqual(
    values.map((value) => Math.round(Math.abs(value) * 1e9)),
    [0, 2e6, 4e6, 6e6, 8e6, 1e7],
  );
  assert.deepEqual(timeTicks(0, 3, 6).text, ["0.0 s", "0.5 s", "1.0 s", "1.5 s", "2.0 s", "2.5 s", "3.0 s"]);
});

test("far from the beginning the first tick is a moment, and the others are distances from it", () => {
  assert.deepEqual(timeTicks(100, 100.000004, 4).text, ["100.000000 s", "+1 µs", "+2 µs", "+3 µs", "+4 µs"]);
  assert.deepEqual(timeTicks(1.234567, 1.2345682, 4).text, ["1.2345670 s", "+0.5 µs", "+1.0 µs"]);
});

test("where no tick fits there is at least one step", () => {
  assert.deepEqual(timeTicks(0, 1, 0).text, ["0 s", "1 s"]);
});
