import assert from "node:assert/strict";
import { test } from "node:test";
import "./canvas.js";
import { escaped, fitted, fittedMiddle, plain, textWidth } from "#panel/label.js";

const FONT = "11px sans-serif";

test("plain text comes out of a label of plotly's as it went in", () => {
  const text = "operator<<(int&, std::vector<T>) &lt;";

  assert.equal(plain(escaped(text)), text);
  assert.equal(escaped("a<b>&c"), "a&lt;b&gt;&amp;c");
});

test("a label's markup is taken away, and its line breaks are what the caller wants", () => {
  assert.equal(plain("<b>aten::mm</b><br>2.00 ms"), "aten::mm\n2.00 ms");
  assert.equal(plain("a<br>b", ""), "ab");
});

test("a text that fits stays whole", () => {
  assert.equal(textWidth("aten::mm", FONT), 80);
  assert.equal(fitted("aten::mm", 80, FONT), "aten::mm");
  assert.equal(fittedMiddle("aten::mm", 80, FONT), "aten::mm");
});

test("a text is cut as late as it can be, and left out where hardly a letter would stay", () => {
  assert.equal(fitted("aten::addmm", 80, FONT), "aten::a…");
  assert.equal(fitted("aten::addmm", 40, FONT), "ate…");
  assert.equal(fitted("aten::addmm", 30, FONT), "");
  assert.equal(fitted("aten::addmm", 0, FONT), "");
});

test("no blank stands before the ellipsis", () => {
  assert.equal(fitted("forward pass", 90, FONT), "forward…");
});

test("of a long name the beginning and the end are kept", () => {
  assert.equal(fittedMiddle("aten::_scaled_dot_product", 110, FONT), "aten:…oduct");
  assert.equal(fittedMiddle("aten::_scaled_dot_product", 10, FONT), "ate…uct");
});
