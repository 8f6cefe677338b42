import assert from "node:assert/strict";
import { test } from "node:test";
import { unpacked, Wire } from "#panel/web/wire.js";
import { Line, packed } from "./line.js";

const QUESTION = { tab: "operators", ask: "row_of", grouping: "op", event: 3 };
const LASTING = { tab: "lines", ask: "lit", grouping: "op" };

test("a question is sent as it is, with a number of its own", () => {
  const line = new Line();
  const wire = new Wire(line);

  wire.ask(QUESTION);
  wire.ask(QUESTION);

  const [first, second] = line.sent;
  assert.deepEqual({ ...first, number: "" }, { ...QUESTION, number: "" });
  assert.notEqual(first.number, second.number);
});

test("answers find their questions in whatever order they come", async () => {
  const line = new Line();
  const wire = new Wire(line);
  const [one, other] = [wire.ask(QUESTION), wire.ask(QUESTION)];

  line.answer(line.sent[1], { id: 2 });
  line.answer(line.sent[0], { id: 1 });

  assert.deepEqual([await one, await other], [{ id: 1 }, { id: 2 }]);
});

test("two views of one panel take each their own answers", async () => {
  const line = new Line();
  const views = [new Wire(line), new Wire(line)];
  const answers = views.map((wire) => wire.ask(QUESTION));

  line.answer(line.sent[1], { id: 2 });
  line.answer(line.sent[0], { id: 1 });

  assert.deepEqual(await Promise.all(answers), [{ id: 1 }, { id: 2 }]);
});

test("the first word from Python makes the line live, and listeners hear of it once", () => {
  const line = new Line();
  const wire = new Wire(line);
  let calls = 0;
  wire.onchange(() => calls++);
  wire.raw({ ask: "hello" });

  assert.deepEqual([wire.live, wire.silent, calls], [false, false, 1]);
  line.answer(line.sent[0], {});
  line.answer(line.sent[0], {});
  assert.deepEqual([wire.live, wire.silent, calls], [true, false, 2]);
});

test("a hello without an answer in good time makes the line silent", (context) => {
  const timers = [];
  context.mock.method(globalThis, "setTimeout", (act, wait) => timers.push({ act, wait }));
  const wire = new Wire(new Line());

  wire.hello();
  assert.deepEqual([timers.map(({ wait }) => wait), wire.silent], [[2_500], false]);
  timers[0].act();
  assert.deepEqual([wire.live, wire.silent], [false, true]);
});

test("where nothing can be sent any more the line is silent, and the question stays open", () => {
  const line = new Line();
  const wire = new Wire(line);
  line.gone = true;

  wire.ask(QUESTION);

  assert.deepEqual([wire.live, wire.silent], [false, true]);
});

test("a question whose answer never changes is asked once, by each view", async () => {
  const line = new Line();
  const wire = new Wire(line);
  const [one, other] = [wire.once(LASTING), wire.once(LASTING)];
  line.answer(line.sent[0], { row: [1] });

  assert.deepEqual(await Promise.all([one, other, wire.once(LASTING)]), [{ row: [1] }, { row: [1] }, { row: [1] }]);
  assert.equal(line.sent.length, 1);
  new Wire(line).once(LASTING);
  assert.equal(line.sent.length, 2);
});

test("a silent line has the answers that came, and null for all others", async () => {
  const line = new Line();
  const wire = new Wire(line);
  const kept = wire.once(LASTING);
  wire.once({ ...LASTING, grouping: "line" });
  line.answer(line.sent[0], { row: [1] });
  await kept;
  line.gone = true;
  wire.ask(QUESTION);

  assert.equal(wire.silent, true);
  assert.deepEqual(await wire.once(LASTING), { row: [1] });
  assert.equal(await wire.once({ ...LASTING, grouping: "line" }), null);
  assert.equal(await wire.once({ ...LASTING, grouping: "shapes" }), null);
  assert.equal(await wire.ask(QUESTION), null);
});

test("a question that could not be sent is asked again once the line is live", async () => {
  const line = new Line();
  const wire = new Wire(line);
  wire.raw({ ask: "hello" });
  line.gone = true;
  assert.equal(await wire.once(LASTING), null);
  line.gone = false;
  line.answer(line.sent[0], {});
  const answer = wire.once(LASTING);
  line.answer(line.sent[1], { row: [1] });

  assert.deepEqual(await answer, { row: [1] });
});

test("an answer that is too long to send is null", async () => {
  const line = new Line();
  const whole = new Wire(line).once({ tab: "timeline", ask: "whole" });
  line.answer(line.sent[0], null);

  assert.equal(await whole, null);
});

test("a question that Python cannot answer says why", () => {
  const line = new Line();
  const wire = new Wire(line);
  const problems = [];
  wire.onerror = (problem) => problems.push(problem);
  wire.ask(QUESTION);

  line.fail(line.sent[0], "KeyError: 'lines'");

  assert.deepEqual(problems, ["KeyError: 'lines'"]);
});

test("a packed text comes back letter for letter", async () => {
  assert.deepEqual(await unpacked(packed({ label: "µ\u0000 \u2028 «mm»" })), { label: "µ\u0000 \u2028 «mm»" });
});
