// What the explorer draws with; `cargo xtask assets` bundles it.
export { default as uPlot } from "uplot";
export { default as flamegraph } from "d3-flame-graph";
export { select } from "d3-selection";
export { hierarchy, treemap } from "d3-hierarchy";
export { Virtualizer, elementScroll, observeElementOffset, observeElementRect } from "@tanstack/virtual-core";
import "uplot/dist/uPlot.min.css";
