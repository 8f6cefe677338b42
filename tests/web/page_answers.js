// Answers of a page to the questions on stdin, `{ carried, rows, questions }`, as JSON on stdout.

import { text } from "node:stream/consumers";
import * as lines from "#panel/tabs/lines/lines_answers.js";
import * as memory from "#panel/tabs/memory/memory_answers.js";
import * as operators from "#panel/tabs/operators/operators_answers.js";
import { withoutDeltas } from "#panel/web/page/page_model.js";
import { PageRows } from "#panel/web/page/page_rows.js";
import * as stacks from "#panel/tabs/stacks/stacks_answers.js";
import * as timeline from "#panel/tabs/timeline/timeline_answers.js";
import * as two_timelines from "#panel/tabs/two_timelines/two_timelines_answers.js";

const modules = { operators, lines, timeline, stacks, memory, two_timelines };
const { questions, rows, ...packed } = JSON.parse(await text(process.stdin));
const carried = withoutDeltas(packed.carried);
const known = new PageRows(withoutDeltas(rows), carried.operators?.tables ?? {});
const answers = questions.map((question) => modules[question.tab].answer(question, carried[question.tab], known));
process.stdout.write(JSON.stringify(answers));
