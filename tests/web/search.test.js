import assert from "node:assert/strict";
import { test } from "node:test";
import { searched } from "#panel/web/search.js";
import { Store } from "#panel/web/store.js";

const NAMES = ["aten::mm", "aten::addmm", "aten::relu"];
const found = (text, regex = false) => NAMES.filter(searched({ text, regex }).holds);

test("a search is a part of a text in either case, or a regular expression", () => {
  assert.deepEqual(found("MM"), ["aten::mm", "aten::addmm"]);
  assert.deepEqual(found("mm$|relu"), []);
  assert.deepEqual(found("::mm$|relu", true), ["aten::mm", "aten::relu"]);
  assert.deepEqual(found(""), NAMES);
});

test("what does not compile says why, and finds everything", () => {
  assert.match(searched({ text: "(mm", regex: true }).problem, /group/i);
  assert.deepEqual(found("(mm", true), NAMES);
  assert.equal(searched({ text: "(mm", regex: false }).problem, "");
});

test("every listener hears of a search, and finds it in the store", () => {
  const store = new Store();
  const heard = [];
  store.on("seek", () => heard.push(store.search.text));

  store.seek({ text: "mm", regex: false });

  assert.deepEqual(heard, ["mm"]);
});
