import assert from "node:assert/strict";
import { test } from "node:test";
import "./canvas.js";
import { fitted, fittedMiddle, plainName, shortLocation, shortName, textWidth } from "#panel/web/label.js";

const FONT = "11px sans-serif";

test("a short name has no namespace, and no prefix of autograd's engine", () => {
  assert.equal(shortName("aten::mm"), "mm");
  assert.equal(shortName("scope::"), "scope::");
  assert.equal(shortName("mine"), "mine");
  assert.equal(shortName("Memcpy HtoD (Pageable -> Device)"), "Memcpy HtoD (Pageable -> Device)");
  assert.equal(shortName("void at::native::(anonymous namespace)::index<float, -2>(at::Info<float>, int)"), "index");
  assert.equal(shortName("autograd::engine::evaluate_function: AddmmBackward0"), "AddmmBackward0");
});

test("a short location has the file's name without its folders, and keeps what is before it", () => {
  assert.equal(shortLocation("/home/me/model.py:12"), "model.py:12");
  assert.equal(shortLocation("C:\\my code\\model.py:12"), "model.py:12");
  assert.equal(shortLocation("torch/nn/functional.py"), "functional.py");
  assert.equal(
    shortLocation("in aten::linear, activation, /home/me/model.py:12"),
    "in aten::linear, activation, model.py:12",
  );
  assert.equal(shortLocation("Cell [3]:4"), "Cell [3]:4");
  assert.equal(shortLocation("in scope a/b, /home/me,you/model.py:12"), "in scope a/b, model.py:12");
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

test("a kernel's plain name has its template arguments, and neither namespaces nor parameters", () => {
  assert.equal(
    plainName("void at::native::(anonymous namespace)::index<float, (kind)0>(at::Info<float>, int)"),
    "index<float, (kind)0>",
  );
  assert.equal(plainName("ampere_sgemm_128x64_tn"), "ampere_sgemm_128x64_tn");
  assert.equal(plainName("aten::mm"), "aten::mm");
  assert.equal(plainName("(no scope)"), "(no scope)");
});
