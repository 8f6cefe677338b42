// Pictures that Python draws: figures of plotly, of which the page reads what is named here. Axes of time are in seconds
// since the recording began.

export type TreeShape = "icicle" | "sunburst";

export type Picture = PlanePicture | TreePicture;

export interface PlanePicture {
  data: PlaneTrace[];
  layout: PlaneLayout;
}

export interface TreePicture {
  data: TreeTrace[];
  layout: TreeLayout;
}

export type PlaneTrace = BarTrace | NameTrace | MarkTrace | CurveTrace | PeakTrace;

/** `Timeline._bars`, and `ribbon._bars` for the phases. */
export interface BarTrace {
  type: "bar";
  name: string;
  base: number[];
  x: number[];
  y: number[];
  width: number | number[];
  marker: { color: string | string[]; opacity?: number[]; pattern?: { shape: string[] } };
  /** Event and name of each bar. */
  customdata?: [number, number][];
  hovertext: string[];
}

export interface ScatterTrace {
  type: "scatter";
  name: string;
  x: number[];
  y: number[];
}

/** `Timeline._labels`, and `ribbon._names` for the phases. */
export interface NameTrace extends ScatterTrace {
  mode: "text";
  text: string[];
  textfont: { size: number; color?: string[] };
  textposition?: undefined;
}

/** `Timeline._ticks`. */
export interface MarkTrace extends ScatterTrace {
  mode: "markers";
  marker: { symbol: string; size: number; line: { width: number; color: string[] } };
  hovertext?: undefined;
}

/** `MemoryChart._line`. */
export interface CurveTrace extends ScatterTrace {
  mode: "lines";
  line: { shape: string; width: number; color: string };
  fillcolor: string;
  hovertext: string[];
}

/** `MemoryChart._peak`. */
export interface PeakTrace extends ScatterTrace {
  mode: "markers+text";
  text: string[];
  textfont?: undefined;
  textposition: "top left" | "top right";
  marker: { symbol: string; size: number; color: string };
  hovertext: string[];
}

/** `StackChart.picture`. */
export interface TreeTrace {
  type: TreeShape;
  ids: string[];
  parents: string[];
  labels: string[];
  values: number[];
  marker: { colors: string[]; line: { width: number; color: string } };
  insidetextfont: { color: string[] };
  customdata: [number, number][];
  hovertext: string[];
}

export type Margin = Record<"l" | "r" | "t" | "b", number>;

export interface Axis {
  range: [number, number];
  tickvals?: number[];
  ticktext?: string[];
  tickformat?: string;
  ticksuffix?: string;
}

/** `Timeline._layout` and `MemoryChart._layout`. */
export interface PlaneLayout {
  height?: number;
  margin: Margin;
  dragmode: string;
  xaxis: Axis;
  yaxis: Axis & { tickvals: number[]; ticktext: string[] };
  annotations?: { text: string; font?: { size: number; color?: string } }[];
}

export interface TreeLayout {
  height?: undefined;
  margin: Margin;
  uniformtext: { minsize: number; mode: string };
  /** While it stays the same, plotly keeps what the user zoomed to. */
  uirevision?: string;
  annotations?: undefined;
}
