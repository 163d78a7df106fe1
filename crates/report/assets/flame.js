// The flame graph of a page.
"use strict";
/** Draws the graph in #flame-graph. `colour` says a node's colour, `details` what is said of it besides, `onClick` what else a click does. */
const flameGraph = ({ colour, details, onClick }) => {
  const { flamegraph, select } = libraries;
  const { kinds, label } = words;
  const { data, byId, all, number, percent, amount, element, checked, onChange, widthOf, isPrinting } = page;
  const flame = { chart: null, root: null, current: null };

  const flameTree = () => {
    const graph = data.flames[checked("flame")];
    const measure = checked("flame-measure") ?? "bytes";
    const part = Number(byId("flame-part").value);
    const nodes = graph.frames.map((frame) => ({
      name: graph.names[frame.name].name,
      kind: graph.names[frame.name].kind,
      value: frame[measure][part],
      parts: frame[measure],
      children: [],
    }));
    graph.frames.forEach((frame, index) => {
      if (index > 0 && nodes[index].value > 0) {
        nodes[frame.parent].children.push(nodes[index]);
      }
    });
    nodes.forEach((node) => node.children.sort((a, b) => b.value - a.value));
    return { root: nodes[0], measure };
  };

  /** Where boxes come to in the end: paper does not wait for them to get there. */
  const settle = (width) => {
    for (const box of all("#flame-graph g.frame")) {
      const node = select(box).datum();
      const wide = (node.x1 - node.x0) * width;
      box.setAttribute("transform", `translate(${node.x0 * width},${node.depth * 20})`);
      box.querySelector("rect").setAttribute("width", wide);
      box.querySelector("foreignObject").setAttribute("width", wide);
      const text = box.querySelector(".d3-flame-graph-label");
      text.textContent = label(node.data);
      text.style.display = wide < 35 ? "none" : "block";
    }
  };

  /** On paper, what is seen: as far as somebody has zoomed. */
  const drawOnPaper = () => {
    const width = widthOf(byId("flame-graph"));
    flame.chart.transitionDuration(0).width(width).update();
    settle(width);
  };

  const drawFlame = () => {
    if (isPrinting() && flame.chart && byId("flame-graph").querySelector("svg")) {
      drawOnPaper();
      return;
    }
    const place = byId("flame-graph");
    const { root, measure } = flameTree();
    place.replaceChildren();
    onClick?.(null);
    flame.root = root;
    if (!root || root.value === 0) {
      place.append(element("p", {}, "Nothing to show."));
      return;
    }
    const says = (node) => {
      const kind = kinds[node.data.kind];
      return `${node.data.name}${kind ? ` (${kind})` : ""}: ${amount[measure](node.data.value)}, ${percent(node.data.value, root.value)}${details?.(node.data, measure) ?? ""}`;
    };
    const isStill = matchMedia("(prefers-reduced-motion: reduce)").matches;
    flame.chart = flamegraph()
      .width(widthOf(place))
      .cellHeight(20)
      .minFrameSize(1)
      .inverted(true)
      .transitionDuration(isStill ? 0 : 200)
      .label(says)
      .getName((node) => label(node.data))
      .setColorMapper((node) => `var(--flame-${node.highlight ? "found" : colour(node.data)})`)
      .setSearchMatch((node, term) => term !== "" && node.data.name.toLowerCase().includes(term.toLowerCase()))
      .setSearchHandler((found, sum, whole) => {
        byId("flame-details").textContent =
          found.length === 0 ? "found nothing" : `found ${number(found.length)}: ${amount[measure](sum)}, ${percent(sum, whole)}`;
      })
      .setDetailsElement(byId("flame-details"))
      .onClick((node) => {
        flame.current = node;
        byId("flame-details").textContent = says(node);
        onClick?.(node);
        dress(says);
      });
    select(place).datum(root).call(flame.chart);
    const svg = place.querySelector("svg");
    svg.setAttribute("role", "group");
    svg.setAttribute("aria-label", "Flame graph; arrow keys go from box to box");
    svg.querySelector("text.title")?.remove();
    flame.current = null;
    dress(says);
    if (isPrinting()) {
      settle(widthOf(place));
    }
    const term = byId("flame-search").value;
    if (term) {
      flame.chart.search(term);
    }
  };

  /** Makes boxes known to those who do not see them, and one of them reachable by Tab. */
  const dress = (says) => {
    const boxes = all("#flame-graph g.frame");
    let first = null;
    for (const box of boxes) {
      const node = select(box).datum();
      box.setAttribute("role", "button");
      box.setAttribute("aria-label", says(node));
      box.setAttribute("tabindex", "-1");
      box.classList.toggle("class", node.data.kind === "class" || node.data.kind === "site");
      if (node === flame.current || (!flame.current && !node.parent)) {
        first = box;
      }
    }
    (first ?? boxes[0])?.setAttribute("tabindex", "0");
  };

  const boxOf = (node) => all("#flame-graph g.frame").find((box) => select(box).datum() === node);
  const visible = (nodes) => (nodes ?? []).filter((node) => node.value > 0 && boxOf(node));

  byId("flame-graph")?.addEventListener("keydown", (event) => {
    const box = event.target.closest?.("g.frame");
    if (!box) {
      return;
    }
    const node = select(box).datum();
    const siblings = visible(node.parent?.children);
    const at = siblings.indexOf(node);
    const to = {
      ArrowUp: node.parent, ArrowDown: visible(node.children)[0], ArrowRight: siblings[at + 1], ArrowLeft: siblings[at - 1],
    }[event.key];
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      box.dispatchEvent(new MouseEvent("click", { bubbles: true }));
      boxOf(node)?.focus();
    } else if (event.key === "Escape") {
      flame.chart.resetZoom();
    } else if (event.key.startsWith("Arrow")) {
      event.preventDefault();
      const next = to && boxOf(to);
      if (next) {
        box.setAttribute("tabindex", "-1");
        next.setAttribute("tabindex", "0");
        next.focus();
        byId("flame-details").textContent = next.getAttribute("aria-label");
      }
    }
  });

  byId("flame-search")?.addEventListener("input", (event) => {
    const term = event.target.value;
    if (term) {
      flame.chart?.search(term);
    } else {
      flame.chart?.clear();
      byId("flame-details").textContent = "";
    }
  });
  byId("flame-reset")?.addEventListener("click", () => flame.chart?.resetZoom());
  onChange("flame", drawFlame);
  onChange("flame-measure", drawFlame);
  byId("flame-part")?.addEventListener("change", drawFlame);
  return drawFlame;
};
