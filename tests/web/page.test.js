import assert from "node:assert/strict";
import { test } from "node:test";
import { deflateSync } from "node:zlib";
import { memoryWindow, thinned } from "#panel/tabs/memory/memory_windows.js";
import { timelineWindow } from "#panel/tabs/timeline/timeline_windows.js";
import { bytes, PageModel } from "#panel/web/page/page_model.js";
import { Wire, withoutDeltas } from "#panel/web/wire.js";

const base64 = (value) => deflateSync(JSON.stringify(value)).toString("base64");

test("columns of differences are what they were", () => {
  const value = { a: { deltas: [5, 1, -2] }, b: { c: [1, 2], d: null, e: "deltas" } };

  assert.deepEqual(withoutDeltas(value), { a: [5, 6, 4], b: { c: [1, 2], d: null, e: "deltas" } });
});

test("bytes come out of base64 as they went in", () => {
  assert.deepEqual([...new Uint8Array(bytes("AP+AfwE=").buffer)], [0, 255, 128, 127, 1]);
});

test("a wire to a page is live, and gets the answers that the page carries", async () => {
  const blocks = {
    "first-lines": base64({}),
    "carried-lines": base64({ "ops-3": { ops: ["mm"] }, "lit-op": { row: { deltas: [5, 1] }, of: [2, 2] } }),
  };
  const model = new PageModel(blocks, { tabs: [{ name: "lines", title: "Lines" }], strip: {} });
  const wire = new Wire(model);
  const problems = [];
  wire.onerror = (problem) => problems.push(problem);

  await wire.raw({ ask: "hello" });
  assert.equal(wire.live, true);
  assert.deepEqual(await wire.once({ tab: "lines", ask: "ops", id: 3 }), { ops: ["mm"] });
  assert.deepEqual(await wire.once({ tab: "lines", ask: "lit", grouping: "op" }), { row: [5, 6], of: [2, 2] });
  await model.send({ tab: "lines", ask: "ops", id: 4, number: "1" });
  assert.deepEqual(problems, ['Error: this page has no answer to {"tab":"lines","ask":"ops","id":4}']);
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

test("a window of a curve has the point before it, and the peak of the whole", () => {
  const at = [0, 10, 20, 30, 40];
  const curve = {
    title: "CPU",
    time_ns: at,
    nbytes: at,
    change: at,
    event: at,
    name: at,
    line: at,
    peak: { nbytes: 40 },
    kinds: [{ title: "gradient", nbytes: at }],
  };
  const { drawn_ns, curves } = memoryWindow({ drawn_ns: [0, 50], curves: [curve], texts: {} }, 15, 25);

  assert.deepEqual(drawn_ns, [15, 25]);
  assert.deepEqual([curves[0].time_ns, curves[0].line, curves[0].peak], [[10, 20, 30], [10, 20, 30], { nbytes: 40 }]);
  assert.deepEqual(curves[0].kinds, [{ title: "gradient", nbytes: [10, 20, 30] }]);
});

test("a page tells where its detail ends, and that it has all where it does", () => {
  const facts = ["event", "name", "took_ns", "self_ns", "phase", "step", "op", "shape", "line"];
  const whole = (count) => ({
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
  const wanted = { begin_ns: 0, end_ns: 1_000, pixels: 100 };

  assert.equal(timelineWindow(whole(4), wanted, null).finest_ns, 64);
  assert.equal(timelineWindow(whole(1), wanted, null).finest_ns, undefined);
});
