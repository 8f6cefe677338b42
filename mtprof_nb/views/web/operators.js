// The operators tab: filter, group, sort, select, copy.

import { h, settled } from "./dom.js";
import { csvLine, number } from "./format.js";
import { Table, sorted } from "./table.js";

/**
 * @import { OperatorRows, OperatorsFirst, OperatorsTable } from "./types/messages"
 * @import { Selection, TabContext, TabView } from "./types/surroundings"
 */

/** So long the table says that it was copied. */
const COPIED_MS = 2000;

/** @param {TabContext<OperatorsFirst>} context @returns {TabView} */
export function mount({ host, first, wire, store }) {
  /** @type {OperatorsTable & { filtered?: boolean }} */
  let answer = first;
  /** @type {number[]} */
  let order = [];
  const filter = { text: "", regex: false };
  let bad = "";
  let most = first.limit ?? Infinity;
  let asked = 0;
  store.grouping = first.grouping;
  const table = new Table({
    label: "Operators",
    nameTitle: "Name",
    families: first.families,
    onsort: (key) => {
      const same = table.sort.key === key;
      table.sort = { key, descending: same ? !table.sort.descending : key !== "label" };
      refresh();
    },
    onselect: (id, row) => store.select(id === null ? null : described(id, row)),
  });
  table.sort = { key: first.sort, descending: first.descending };

  const input = h("input", {
    type: "search",
    class: "mtprof-input mtprof-filter",
    placeholder: "Filter by name",
    "aria-label": "Filter rows by name",
    spellcheck: "false",
    oninput: () => {
      filter.text = input.value;
      refreshSoon();
    },
  });
  const regex = h("button", {
    type: "button",
    class: "mtprof-button mtprof-regex",
    "aria-pressed": "false",
    "aria-label": "The filter is a regular expression",
    title: "The filter is a regular expression",
    text: ".*",
    onclick: () => {
      filter.regex = !filter.regex;
      regex.setAttribute("aria-pressed", String(filter.regex));
      refresh();
    },
  });
  const grouping = h(
    "select",
    { class: "mtprof-input mtprof-select", "aria-label": "Group by", onchange: () => regroup() },
    ...first.groupings.map(({ key, title, flag }) =>
      h("option", { value: key, disabled: flag !== "", text: flag ? `${title} (${flag})` : title }),
    ),
  );
  const copy = h(
    "button",
    { type: "button", class: "mtprof-button", title: "Copy the listed rows as CSV", onclick: () => copyRows() },
    h("span", { class: "mtprof-word", text: "Copy " }),
    "CSV",
  );
  const all = h("button", {
    type: "button",
    class: "mtprof-button",
    text: "All rows",
    hidden: true,
    onclick: () => {
      most = Infinity;
      list();
    },
  });
  const count = h("span", { class: "mtprof-count", role: "status" });
  const group = h("label", { class: "mtprof-field" }, h("span", { class: "mtprof-word", text: "by " }), grouping);
  host.append(
    h("div", { class: "mtprof-tools" }, input, regex, group, count, all, copy),
    h("div", { class: "mtprof-stage" }, table.element),
  );

  /** @param {number} id @param {number} row @returns {Selection} */
  function described(id, row) {
    return {
      grouping: store.grouping,
      row: id,
      label: answer.rows.label[row],
      detail: answer.rows.detail[row],
      name: answer.rows.name[row],
    };
  }

  /** Whether Python holds rows that are not here. */
  const partial = () => answer.total > answer.rows.id.length || answer.filtered;

  /** @returns {(row: number) => boolean} */
  function matcher() {
    bad = "";
    if (!filter.text) return () => true;
    /** @param {number} row */
    const texts = (row) => [answer.rows.label[row], answer.rows.detail[row]];
    const part = filter.text.toLowerCase();
    if (!filter.regex) return (row) => texts(row).some((text) => text.toLowerCase().includes(part));
    try {
      const pattern = new RegExp(filter.text, "i");
      return (row) => texts(row).some((text) => pattern.test(text));
    } catch (error) {
      bad =
        String(/** @type {SyntaxError} */ (error).message)
          .split(": ")
          .pop() ?? "";
      return () => true;
    }
  }

  function list() {
    const matches = matcher();
    table.fill(answer.columns, answer.rows, answer.whole_ns);
    const matching = sorted(table, answer.rows, table.sort).filter(matches);
    order = matching.slice(0, most);
    all.hidden = order.length === matching.length;
    input.setAttribute("aria-invalid", String(bad !== ""));
    count.classList.toggle("mtprof-bad", bad !== "");
    const shows = h("span", { class: "mtprof-word", text: "showing " });
    count.replaceChildren(
      ...(bad ? [`not a regular expression: ${bad}`] : [shows, `${number(order.length)} of ${number(answer.total)}`]),
    );
    count.title = count.textContent;
    table.show(order, `No name holds “${filter.text}”.`);
    table.select(store.selection?.grouping === store.grouping ? store.selection.row : null, false);
  }

  async function refresh() {
    list();
    if (!partial() || bad) return;
    // More rows than were sent: Python sorts and filters all of them.
    const wanted = {
      sort: table.sort.key,
      descending: table.sort.descending,
      filter: filter.text,
      regex: filter.regex,
    };
    const rows = await latest(wanted);
    if (rows) take(rows, wanted.filter !== "");
  }
  const refreshSoon = settled(refresh, 80);

  /**
   * Rows of the chosen grouping; null where others were asked for meanwhile.
   * @param {{ sort: string, descending?: boolean, filter?: string, regex?: boolean }} wanted
   */
  async function latest(wanted) {
    const number = ++asked;
    const rows = await wire.ask({ tab: "operators", ask: "rows", grouping: grouping.value, ...wanted });
    return number === asked ? rows : null;
  }

  /** @param {OperatorsTable} rows */
  function take(rows, filtered = false) {
    answer = { ...answer, ...rows, filtered };
    store.grouping = rows.grouping;
    list();
  }

  async function regroup() {
    store.select(null);
    const rows = await latest({ sort: "self_ns" });
    if (!rows) return;
    table.sort = { key: rows.sort, descending: true };
    take(rows);
  }

  async function copyRows() {
    const columns = answer.columns.filter((column) => column.key in answer.rows.value);
    const lines = [csvLine(["name", "detail", ...columns.map((column) => column.key)])];
    for (const row of order) {
      const { label, detail, value } = answer.rows;
      lines.push(csvLine([label[row], detail[row], ...columns.map((column) => value[column.key][row])]));
    }
    await toClipboard(`${lines.join("\n")}\n`);
    count.replaceChildren(`copied ${number(order.length)} rows`);
    copy.classList.add("mtprof-done");
    copied();
  }

  const copied = settled(() => {
    copy.classList.remove("mtprof-done");
    list();
  }, COPIED_MS);

  // A click in a chart names an event; its row is asked for under the present grouping.
  store.onpick(async ({ event, name }) => {
    let row = answer.rows.name.indexOf(name);
    if (wire.live && event >= 0) {
      const found = await wire.ask({ tab: "operators", ask: "row_of", event, grouping: store.grouping });
      row = answer.rows.id.indexOf(found.row);
      if (row < 0 && found.row >= 0) row = append(found.rows);
      else if (found.row < 0) row = -1;
    }
    if (row < 0) return;
    // What is picked in a chart is to be seen in the table too.
    if (!order.includes(row)) {
      most = Infinity;
      list();
    }
    store.select(described(answer.rows.id[row], row));
  });

  /** @param {OperatorRows} rows */
  function append(rows) {
    for (const key of /** @type {const} */ (["id", "family", "name"])) answer.rows[key].push(...rows[key]);
    for (const key of /** @type {const} */ (["label", "detail"])) answer.rows[key].push(...rows[key]);
    for (const key of Object.keys(answer.rows.value)) answer.rows.value[key].push(...rows.value[key]);
    list();
    return answer.rows.id.length - 1;
  }

  store.onselect((selection) => table.select(selection?.grouping === store.grouping ? selection.row : null));
  wire.onchange(() => {
    grouping.disabled = wire.silent;
    if (wire.silent) grouping.value = store.grouping;
  });
  refresh();
  return { destroy: () => table.destroy() };
}

/** @param {string} text */
async function toClipboard(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // Without permission, or on a page that is not secure, the old way still works.
    const area = h("textarea", { style: "position:fixed;opacity:0" });
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
}
