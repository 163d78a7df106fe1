// What the report draws with; `cargo xtask assets` bundles it.
export { default as uPlot } from "uplot";
export { default as flamegraph } from "d3-flame-graph";
export { select } from "d3-selection";
import "uplot/dist/uPlot.min.css";
