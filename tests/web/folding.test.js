import assert from "node:assert/strict";
import { test } from "node:test";
import { foldedChart } from "#panel/tabs/stacks/folding.js";

/**
 * train called two frames of lightning: fit, which called run and the op mm, and which called the user's step. run called
 * the op mm too, and step called two frames of torch with an op each. [library, function, caller, own]
 */
const FRAMES = [
  ["", "train", -1, 1],
  ["lightning", "fit", 0, 2],
  ["lightning", "run", 1, 4],
  ["", "mm", 1, 8],
  ["", "mm", 2, 16],
  ["", "step", 2, 32],
  ["torch", "forward", 5, 64],
  ["torch", "backward", 5, 128],
  ["", "add", 7, 256],
  ["Python", "sleep", 0, 512],
];

const total = FRAMES.map(([, , , own]) => own);
for (let at = FRAMES.length - 1; at > 0; at--) total[FRAMES[at][2]] += total[at];
const SLICES = {
  parent: FRAMES.map(([, , caller]) => caller),
  label: FRAMES.map(([, name]) => name),
  full: FRAMES.map(([, name]) => name),
  total,
  own: FRAMES.map(([, , , own]) => own),
  folded: FRAMES.map(() => 0),
  fill: FRAMES.map(() => 0),
  library: FRAMES.map(([library]) => library),
  event: FRAMES.map((_, at) => at),
  name: FRAMES.map(([library, name]) => (library || name === "train" || name === "step" ? -1 : name.length)),
  line: FRAMES.map((_, at) => at + 100),
  lit: null,
};

const drawn = (opened, slices = SLICES) => foldedChart({ metric: "self", slices }, opened).slices;
/** The slices as lines, each below its caller. */
const outline = ({ parent, label, own, total: whole }) => {
  const lines = (caller, indent) =>
    parent.flatMap((above, at) =>
      above === caller ? [`${indent}${label[at]} ${own[at]}/${whole[at]}`, ...lines(at, `${indent}  `)] : [],
    );
  return lines(-1, "");
};

test("frames of one library that call each other, or have one caller, are one slice", () => {
  const folded = drawn(new Set());

  assert.deepEqual(outline(folded), [
    "train 1/1023",
    "  lightning (2 frames) 6/510",
    "    mm 24/24",
    "    step 32/480",
    "      torch (2 frames) 192/448",
    "        add 256/256",
    "  sleep 512/512",
  ]);
  assert.deepEqual(folded.frames, [1, 2, 1, 1, 2, 1, 1]);
  assert.equal(folded.full[1], "2 frames of lightning");
});

test("a library is opened alone, and its frames keep their ids", () => {
  const folded = drawn(new Set());
  const opened = drawn(new Set([folded.id[4]]));

  assert.deepEqual(outline(opened).slice(3), [
    "    step 32/480",
    "      forward 64/64",
    "      backward 128/384",
    "        add 256/256",
    "  sleep 512/512",
  ]);
  assert.equal(opened.id[4], folded.id[4]);
  assert.deepEqual(outline(drawn(new Set([1]))).slice(1, 5), [
    "  fit 2/510",
    "    run 4/500",
    "      mm 16/16",
    "      step 32/480",
  ]);
});

test("all libraries are open where nothing is folded", () => {
  const open = drawn(null);

  assert.deepEqual(open.parent, SLICES.parent);
  assert.deepEqual(open.label, SLICES.label);
  assert.deepEqual(open.frames, Array(10).fill(1));
});

test("a slice is as lit as what is folded into it", () => {
  assert.deepEqual(drawn(new Set(), { ...SLICES, lit: [1, 1, 1, 0, 2, 0, 0, 0, 0, 0] }).lit, [1, 1, 2, 0, 0, 0, 0]);
});

test("small slices below folded frames are one, with their number", () => {
  const folded = SLICES.folded.with(3, 1_200).with(4, 34);
  const { label, folded: small } = drawn(new Set(), { ...SLICES, folded, name: SLICES.name.with(3, -1).with(4, -1) });

  assert.equal(label[2], "other (1,234)");
  assert.equal(small[2], 1_234);
});
