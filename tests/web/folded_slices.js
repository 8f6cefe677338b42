// The slices on stdin as a page folds them, as JSON on stdout.

import { text } from "node:stream/consumers";
import { foldedChart } from "#panel/tabs/stacks/folding.js";

const chart = JSON.parse(await text(process.stdin));
process.stdout.write(JSON.stringify(foldedChart(chart, new Set()).slices));
