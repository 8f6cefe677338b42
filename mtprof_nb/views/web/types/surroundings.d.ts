// The page around a panel: anywidget's model, and what a tab is given and gives.

import type { PanelState, Question, Reply, Request, Selected } from "./messages";
import type { Store } from "../store.js";
import type { Sent, Wire } from "../wire.js";

/** The widget's end on the page, as anywidget gives it. */
export interface Model {
  get<Key extends keyof PanelState>(key: Key): PanelState[Key];
  on(event: "msg:custom", listener: (message: Reply, answers: Sent[]) => void): void;
  on(event: "change:first", listener: () => void): void;
  send(content: (Question | Request) & { number: string; process?: number }): void;
}

/** What a tab's module is mounted with. */
export interface TabContext<First> {
  host: HTMLElement;
  first: First;
  wire: Wire;
  store: Store;
}

/** A mounted tab: what the panel calls. */
export interface TabView {
  /** The theme has changed. */
  restyle?(): void;
  /** The tab has come to the front again. */
  shown?(): void;
  /** The selection has changed. A tab that was hidden meanwhile is called when it comes to the front. */
  renew?(): void;
  /** The page is about to be printed, with room for all of the tab, or was printed. All is to be drawn at once. */
  print?(isOn: boolean): void;
  destroy?(): void;
}

/** A module of a tab. Which `first` it takes, its name decides. */
export interface TabModule {
  mount(context: TabContext<never>): TabView;
}

/** A row, or a line, that is selected. */
export interface Selection extends Selected {
  /** Of a module, its row and those of its submodules. */
  rows?: number[];
  label: string;
  detail: string;
  /** The position of its name among the trace's names, -1 where it has none. */
  name: number;
}

type AttributeValue = string | number | boolean | null | undefined;

/** Attributes of an element: `on…` adds a listener, `text` sets the text, null leaves an attribute out. */
export type Attributes = {
  [Name in keyof HTMLElementEventMap as `on${Name}`]?: (event: HTMLElementEventMap[Name]) => void;
} & {
  [Name in
    | "class"
    | "disabled"
    | "hidden"
    | "id"
    | "placeholder"
    | "role"
    | "spellcheck"
    | "style"
    | "tabindex"
    | "text"
    | "title"
    | "type"
    | "value"]?: AttributeValue;
} & {
  [name: `aria-${string}` | `data-${string}`]: AttributeValue;
};

export type SvgAttributes = Record<string, AttributeValue>;
