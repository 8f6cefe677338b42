// The panel as a page of its own: what it shows is packed into the page, and nothing is fetched.

import { h } from "../dom.js";
import { render } from "../panel.js";
import { unpacked } from "../wire.js";
import { bytes, PageModel } from "./page_model.js";

/**
 * @import { Blocks } from "./page_model.js"
 * @import { TabName } from "../types/messages"
 * @import { TabModule } from "../types/surroundings"
 */

/** @param {Record<TabName, TabModule>} kinds the tabs' modules by name */
export async function start(kinds) {
  /** @type {Blocks} */
  const blocks = {};
  for (const part of document.querySelectorAll("script[data-mtprof]"))
    blocks[/** @type {HTMLElement} */ (part).dataset.mtprof ?? ""] = part.textContent ?? "";
  const model = new PageModel(blocks, await unpacked(bytes(blocks.state)));
  const el = h("main", { class: "mtprof-page" });
  document.body.append(el);
  await render({ model, el, opensAll: true }, kinds);
}
