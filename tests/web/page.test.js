import assert from "node:assert/strict";
import { test } from "node:test";
import { deflateSync } from "node:zlib";
import { thinned } from "#panel/tabs/memory/memory_answers.js";
import { bytes, PageModel, withoutDeltas } from "#panel/web/page/page_model.js";
import { PageRows } from "#panel/web/page/page_rows.js";
import { answer } from "#panel/tabs/timeline/timeline_answers.js";
import { Wire } from "#panel/web/wire.js";

const base64 = (value) => deflateSync(JSON.stringify(value)).toString("base64");
const MODULES = { rows: { id: [4, 5, 6], label: ["Net", "Net.first", "Network"] } };
const ROWS = new PageRows(
  { events: [3, 9], rows: { op: [1, 2], module: [5, 6] }, lines: [7, -1] },
  { module: MODULES },
);

test("columns of differences are what they were", () => {
  const value = { a: { deltas: [5, 1, -2] }, b: { c: [1, 2], d: null, e: "deltas" } };

  assert.deepEqual(withoutDeltas(value), { a: [5, 6, 4], b: { c: [1, 2], d: null, e: "deltas" } });
});

test("bytes come out of base64 as they went in", () => {
  assert.deepEqual([...new Uint8Array(bytes("AP+AfwE=").buffer)], [0, 255, 128, 127, 1]);
});

test("events have their rows and lines, and those that are not carried have none", () => {
  assert.deepEqual([ROWS.rowOf("op", 9), ROWS.rowOf("op", 4), ROWS.rowOf("shapes", 9)], [2, -1, -1]);
  assert.deepEqual([ROWS.lineOf(3), ROWS.lineOf(9), ROWS.lineOf(4)], [7, -1, -1]);
});

test("a selected module selects its submodules too", () => {
  assert.deepEqual([...ROWS.chosen({ grouping: "module", row: 4 })], [4, 5]);
  assert.deepEqual([...ROWS.chosen({ grouping: "op", row: 4 })], [4]);
});

test("a wire to a page is live, and gets its answers from what the page carries", async () => {
  const blocks = {
    "first-lines": base64({}),
    "carried-lines": base64({ ops: { 3: ["mm"] } }),
    "carried-operators": base64({ tables: {} }),
    rows: base64({ events: [], rows: {}, lines: [] }),
  };
  const answers = { lines: { answer: ({ id }, { ops }) => ({ ops: ops[id] }) } };
  const model = new PageModel(blocks, answers, { tabs: [{ name: "lines", title: "Lines" }], strip: {} });
  const wire = new Wire(model);
  const problems = [];
  wire.onerror = (problem) => problems.push(problem);

  await wire.raw({ ask: "hello" });
  assert.equal(wire.live, true);
  assert.deepEqual(await wire.ask({ tab: "lines", ask: "ops", id: 3 }), { ops: ["mm"] });
  await model.send({ tab: "stacks", ask: "chart", number: "1" });
  assert.equal(problems.length, 1);
});

test("a curve of many points keeps its peaks", () => {
  const held = Array.from({ length: 1_000 }, (_, at) => at % 10);
  held[503] = 99;
  held[504] = -99;
  const kept = thinned(held, 100, 900, 40);

  assert.ok(kept.length <= 40);
  assert.ok(kept.includes(503) && kept.includes(504));
  assert.deepEqual([kept[0], kept.at(-1)], [100, 899]);
  assert.deepEqual(thinned(held, 5, 8, 40), [5, 6, 7]);
});

test("a page tells where its detail ends, and that it has all where it does", () => {
  const facts = ["event", "name", "took_ns", "self_ns", "phase", "step", "op", "shape", "line"];
  const carried = (count) => ({
    drawn_ns: [0, 1_000],
    merged_ns: 64,
    blocks: { row: [0], start_ns: [10], length_ns: [20], count: [count], time_ns: [15] },
    bars: {
      block: [0],
      family: [0],
      count: [count],
      time_ns: [15],
      ...Object.fromEntries(facts.map((key) => [key, [0]])),
    },
    texts: {},
    gaps: { lane: [], start_ns: [], length_ns: [], cause: [], count: [], time_ns: [] },
    launches: { kernel: [], call: [], owner: [], within: { event: [], parent: [] } },
    phases: { lane: [], start_ns: [], length_ns: [], phase: [] },
    steps: { number: [], start_ns: [] },
  });
  const question = { ask: "window", begin_ns: 0, end_ns: 1_000, pixels: 100, selected: null };

  assert.equal(answer(question, carried(4), ROWS).finest_ns, 64);
  assert.equal(answer(question, carried(1), ROWS).finest_ns, undefined);
});
