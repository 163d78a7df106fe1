// The difference of runs: its flame graph.
"use strict";
(() => {
  const { data, number, bytes, drawers, show } = page;

  // Parts of a node: after, before, more, less.
  /** How much of a node changed, in steps of colour: 0 where nothing did, 3 where half of it or more. */
  const step = ([after, before]) => {
    const change = Math.abs(after - before) / Math.max(after, before, 1);
    return [0.02, 0.15, 0.5].filter((limit) => change >= limit).length;
  };
  const colour = (node) => {
    const [after, before] = node.parts;
    const steps = step(node.parts);
    return steps === 0 ? "same" : `${after > before ? "more" : "less"}-${steps}`;
  };
  const shown = { bytes, objects: number };
  const signed = (by, measure) => `${by > 0 ? "+" : by < 0 ? "-" : ""}${shown[measure](Math.abs(by))}`;
  const details = (node, measure) => {
    const [after, before] = node.parts;
    return `; before ${shown[measure](before)}, after ${shown[measure](after)}, ${signed(after - before, measure)}`;
  };
  if (data.flames) {
    drawers.contexts = flameGraph({ colour, details });
  }

  show(location.hash.slice(1), false);
})();
