// The panel as a page of its own: what it shows is packed into the page, and nothing is fetched.

import { h } from "../dom.js";
import { render } from "../panel.js";
import { unpacked } from "../wire.js";
import { bytes, PageModel } from "./page_model.js";

/**
 * @import { AnswerModules, Blocks } from "../types/carried"
 * @import { TabName } from "../types/messages"
 * @import { TabModule } from "../types/surroundings"
 */

/** @param {Record<TabName, TabModule>} kinds the tabs' modules by name @param {AnswerModules} answers */
export async function start(kinds, answers) {
  /** @type {Blocks} */
  const blocks = {};
  for (const part of document.querySelectorAll("script[data-mtprof]"))
    blocks[/** @type {HTMLElement} */ (part).dataset.mtprof ?? ""] = part.textContent ?? "";
  const model = new PageModel(blocks, answers, await unpacked(bytes(blocks.state)));
  const el = h("main", { class: "mtprof-page" });
  document.body.append(el);
  await render({ model, el, opensAll: true }, kinds);
}
