// Answers of a page to the questions on stdin, `{ carried, questions }`, as JSON on stdout.

import { text } from "node:stream/consumers";
import { memoryWindow } from "#panel/tabs/memory/memory_windows.js";
import { litByRows } from "#panel/tabs/stacks/slices.js";
import { launchesOf } from "#panel/tabs/timeline/launches.js";
import { timelineWindow } from "#panel/tabs/timeline/timeline_windows.js";
import { stepWindows } from "#panel/tabs/two_timelines/step_windows.js";
import { ofRows, rowOf, rowsOf } from "#panel/web/event_rows.js";
import { withoutDeltas } from "#panel/web/wire.js";

const { questions, carried } = withoutDeltas(JSON.parse(await text(process.stdin)));
const { timeline, operators, lines, stacks, memory, two_timelines } = carried;

const events = (grouping) => operators[`events-${grouping}`];
const isChosen = ({ grouping, rows }) => {
  const chosen = new Set(rows);
  return (event) => chosen.has(rowOf(events(grouping), event));
};
const litSlices = ({ metric, selected: { grouping, rows } }) =>
  litByRows(stacks[`chart-${metric}`].slices, stacks[`lit-${metric}-${grouping}`], new Set(rows));

const ANSWERS = {
  "timeline window": (asked) => timelineWindow(timeline.whole, asked, asked.selected && isChosen(asked.selected)),
  "timeline launches": ({ event }) => launchesOf(event, timeline.whole.launches),
  "memory window": ({ begin_ns, end_ns }) => memoryWindow(memory.whole, begin_ns, end_ns),
  "two_timelines window": (asked) => stepWindows(two_timelines.whole, asked),
  "operators row_of": ({ grouping, event }) => ({ row: rowOf(events(grouping), event) }),
  "operators lit": ({ grouping, line }) => rowsOf(operators[`lit-${grouping}`], line),
  "lines lit": ({ selected: { grouping, rows } }) => [...ofRows(lines[`lit-${grouping}`], new Set(rows))],
  "stacks lit": litSlices,
};
process.stdout.write(JSON.stringify(questions.map((asked) => ANSWERS[`${asked.tab} ${asked.ask}`](asked))));
