import assert from "node:assert/strict";
import { test } from "node:test";
import { Store } from "#panel/web/store.js";
import { Wire } from "#panel/web/wire.js";
import { Line } from "./line.js";

const ROW = { grouping: "op", row: 3, label: "aten::mm", detail: "", name: 7 };
const SOURCE = { grouping: "source", row: 0, label: "Cell [1]:4", detail: "x @ y", name: -1 };

test("every listener hears of a selection, and finds it in the store", () => {
  const store = new Store();
  const heard = [];
  store.on("select", (selection) => heard.push([selection, store.selection]));

  store.select(ROW);
  store.select(null);

  assert.deepEqual(heard, [
    [ROW, ROW],
    [null, null],
  ]);
});

test("nothing happens where nothing was selected and nothing is", () => {
  const store = new Store();
  store.on("select", () => assert.fail("nothing has changed"));

  store.select(null);
});

test("a question carries of the selection what Python needs to find its events", () => {
  const store = new Store();

  assert.equal(store.selected, null);
  store.select(ROW);
  assert.deepEqual(store.selected, { grouping: "op", row: 3 });
});

test("a click in a chart is told to every listener, and selects nothing by itself", () => {
  const store = new Store();
  const picked = [];
  store.on("pick", (one) => picked.push(one));

  store.emit("pick", { event: 12, name: 7, line: 3 });

  assert.deepEqual(picked, [{ event: 12, name: 7, line: 3 }]);
  assert.equal(store.selection, null);
});

test("two views of one panel ask each with their own selection", async () => {
  const line = new Line();
  const views = [ROW, SOURCE].map((selection) => {
    const [wire, store] = [new Wire(line), new Store()];
    store.select(selection);
    return { wire, store };
  });

  const answers = views.map(({ wire, store }) => wire.ask({ tab: "lines", ask: "lit", selected: store.selected }));
  assert.deepEqual(
    line.sent.map(({ selected }) => selected),
    [
      { grouping: "op", row: 3 },
      { grouping: "source", row: 0 },
    ],
  );
  line.answer(line.sent[1], { ids: [0] });
  line.answer(line.sent[0], { ids: [2, 5] });
  assert.deepEqual(await Promise.all(answers), [{ ids: [2, 5] }, { ids: [0] }]);
});

test("the store knows which event was clicked, until something else is selected", () => {
  const store = new Store();
  store.select(ROW, 12);
  assert.equal(store.picked, 12);

  store.select(SOURCE);
  assert.equal(store.picked, -1);
});
