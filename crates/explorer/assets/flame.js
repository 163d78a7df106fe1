// The flame graph of what is chosen, and the same as a flat table of methods.
import { address, ask } from "./api.js";
import { all, button, choice, choose, code, element, later, save } from "./dom.js";
import { amount, foot, frame, nothing, table } from "./parts.js";
import { chosen, selecting } from "./selecting.js";
import { linesOf } from "./source.js";
import { go, selection } from "./state.js";
import { bytes, number, objects, percent } from "./units.js";

const { kinds: KINDS, label } = words;
const WEIGHTS = { bytes, objects };
/** The same without its unit, in a column that says it. */
const CELLS = { bytes, objects: number };
/** Lines of the flat table. */
const FLAT = 300;

/** The tree of an answer, by one of its weights. */
const treeOf = (graph, weight) => {
  const nodes = graph.frames.map((frame) => ({ ...graph.names[frame.name], value: frame[weight][0], children: [] }));
  graph.frames.forEach((frame, index) => {
    if (index > 0 && nodes[index].value > 0) {
      nodes[frame.parent].children.push(nodes[index]);
    }
  });
  nodes.forEach((node) => node.children.sort((a, b) => b.value - a.value));
  return nodes[0];
};

/** What was searched for as a test of names; `null`: it is no regular expression. */
const matcher = (term) => {
  try {
    const expression = new RegExp(term, "i");
    return (name) => expression.test(name);
  } catch {
    return null;
  }
};

/** By name: what it made itself and what was made under it, each stack once. */
const flat = (root) => {
  const methods = new Map();
  const walk = (node, above) => {
    let inside = above;
    if (node !== root) {
      const entry = methods.get(node.name) ?? { name: node.name, kind: node.kind, self: 0, total: 0 };
      methods.set(node.name, entry);
      // Classes at the tip of a stack are what their caller made itself.
      const isCode = (child) => child.kind !== "class" && child.kind !== "site";
      entry.self += node.value - node.children.filter(isCode).reduce((sum, child) => sum + child.value, 0);
      if (!above.has(node.name)) {
        entry.total += node.value;
        inside = new Set(above).add(node.name);
      }
    }
    node.children.forEach((child) => walk(child, inside));
  };
  walk(root, new Set());
  return [...methods.values()].sort((a, b) => b.self - a.self || b.total - a.total);
};

/** One line for each stack, as flamegraph.pl and speedscope read them. */
const collapsed = (root) => {
  const lines = [];
  const walk = (node, stack) => {
    const here = node === root ? stack : [...stack, node.name.replace(/[;\r\n]/g, "_")];
    const own = node.value - node.children.reduce((sum, child) => sum + child.value, 0);
    if (own > 0 && here.length > 0) {
      lines.push(`${here.join(";")} ${own}\n`);
    }
    node.children.forEach((child) => walk(child, here));
  };
  walk(root, []);
  return lines.join("");
};

/** Draws the graph. */
const graphIn = (place, details, source, root, weight) => {
  const { flamegraph, select } = libraries;
  const write = WEIGHTS[weight];
  let current = null;
  const says = ({ data }) => `${data.name}${KINDS[data.kind] ? ` (${KINDS[data.kind]})` : ""}: ${write(data.value)}, ${percent(data.value, root.value)}`;
  const isStill = matchMedia("(prefers-reduced-motion: reduce)").matches;
  let term = null;
  const chart = flamegraph()
    .width(document.documentElement.classList.contains("printing") ? 700 : Math.max(300, place.clientWidth - 2))
    .cellHeight(20)
    .minFrameSize(1)
    .inverted(true)
    .transitionDuration(isStill ? 0 : 200)
    .label(says)
    .getName((node) => label(node.data))
    .setColorMapper((node) => `var(--flame-${node.highlight ? "found" : node.data.kind})`)
    .setSearchMatch((node) => term?.(node.data.name) ?? false)
    .setSearchHandler((found, sum, whole) => {
      details.textContent = found.length === 0 ? "found nothing" : `found ${number(found.length)}: ${write(sum)}, ${percent(sum, whole)}`;
    })
    .setDetailsElement(details)
    .onClick((node) => {
      current = node;
      details.textContent = says(node);
      // Of a class with its site, the site.
      source.replaceChildren(...[linesOf(node.data.name.split("  ").at(-1))].filter(Boolean));
      dress();
    });
  /** Makes boxes known to those who do not see them, and one of them reachable by Tab. */
  const dress = () => {
    const boxes = all("g.frame", place);
    let first = null;
    for (const box of boxes) {
      const node = select(box).datum();
      box.setAttribute("role", "button");
      box.setAttribute("aria-label", says(node));
      box.setAttribute("tabindex", "-1");
      if (node === current || (!current && !node.parent)) {
        first = box;
      }
    }
    (first ?? boxes[0])?.setAttribute("tabindex", "0");
  };
  select(place).datum(root).call(chart);
  const svg = place.querySelector("svg");
  svg.setAttribute("role", "group");
  svg.setAttribute("aria-label", "Flame graph; arrow keys go from box to box");
  svg.querySelector("text.title")?.remove();
  dress();

  const boxOf = (node) => all("g.frame", place).find((box) => select(box).datum() === node);
  const visible = (nodes) => (nodes ?? []).filter((node) => node.value > 0 && boxOf(node));
  place.onkeydown = (event) => {
    const box = event.target.closest?.("g.frame");
    if (!box) {
      return;
    }
    const node = select(box).datum();
    const siblings = visible(node.parent?.children);
    const at = siblings.indexOf(node);
    const to = { ArrowUp: node.parent, ArrowDown: visible(node.children)[0], ArrowRight: siblings[at + 1], ArrowLeft: siblings[at - 1] }[event.key];
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      box.dispatchEvent(new MouseEvent("click", { bubbles: true }));
      boxOf(node)?.focus();
    } else if (event.key === "Escape") {
      chart.resetZoom();
    } else if (event.key.startsWith("Arrow")) {
      event.preventDefault();
      const next = to && boxOf(to);
      if (next) {
        box.setAttribute("tabindex", "-1");
        next.setAttribute("tabindex", "0");
        next.focus();
        details.textContent = next.getAttribute("aria-label");
      }
    }
  };
  return {
    search: (text) => {
      term = text ? matcher(text) : null;
      if (!text) {
        chart.clear();
        details.textContent = "";
      } else if (!term) {
        details.textContent = "This is not a regular expression.";
      } else {
        chart.search(text);
      }
    },
    reset: () => chart.resetZoom(),
  };
};

export const flame = {
  id: "flame",
  name: "Flame graph",
  make: (panel, app) => {
    const { controls, answer, foot: below } = frame(panel, "Who makes them");
    const tell = selecting(controls, "flame", app.trace);
    let drawn = null;
    const search = element("input", { type: "search", placeholder: "regular expression", spellcheck: "false", autocomplete: "off", oninput: later(200, () => {
      go({ search: search.value }, { replace: true, quiet: true });
      drawn?.search(search.value);
    }) });
    controls.append(
      choice("From the", "flame-down", [["callers", "caller down"], ["sites", "site up"]], "callers", (down) => go({ down })),
      choice("Weight", "flame-weight", [["bytes", "bytes"], ["objects", "objects"]], "bytes", (weight) => go({ weight })),
      choice("As", "flame-shape", [["graph", "graph"], ["flat", "flat table"]], "graph", (shape) => go({ shape })),
      element("label", {}, "Search ", search),
    );
    return async (state, signal) => {
      tell(state);
      choose(controls, "flame-down", state.down);
      choose(controls, "flame-weight", state.weight);
      choose(controls, "flame-shape", state.shape);
      if (search !== document.activeElement) {
        search.value = state.search;
      }
      const of = state.path.length ? { by: state.by, path: state.path } : {};
      const isFlat = state.shape === "flat";
      // What a method makes itself can only be told from the callers down.
      const down = isFlat ? "callers" : state.down;
      all('input[name="flame-down"]', controls).forEach((input) => (input.disabled = isFlat));
      const graph = await ask("flame", { ...selection(state), ...of, down }, signal);
      const weight = state.weight === "objects" ? "objects" : "bytes";
      const write = WEIGHTS[weight];
      const root = graph.frames.length ? treeOf(graph, weight) : { value: 0, children: [] };
      const summary = element("p", { class: "summary" }, `${write(root.value)} ${chosen(state, app.clock())}`,
        state.path.length ? ` of ${state.path.join(" › ")} ` : ". ", state.path.length ? button("of all", () => go({ path: [] }), { class: "small" }) : null);
      drawn = null;
      const columns = ["name", "kind", `self ${weight}`, `total ${weight}`];
      if (!root.value) {
        answer.replaceChildren(summary, nothing("There are no such objects."));
      } else if (isFlat) {
        const test = matcher(state.search) ?? (() => true);
        const lines = flat(root).filter(({ name }) => test(name));
        const most = Math.max(0, ...lines.map(({ self }) => self));
        const rows = lines.slice(0, FLAT).map((line) => element("tr", {}, element("th", { scope: "row" }, code(line.name)), element("td", {}, KINDS[line.kind]),
          element("td", { class: "number" }, amount(CELLS[weight](line.self), line.self, most)), element("td", { class: "number" }, percent(line.self, root.value)),
          element("td", { class: "number" }, amount(CELLS[weight](line.total), line.total, root.value)), element("td", { class: "number" }, percent(line.total, root.value))));
        answer.replaceChildren(summary, table("Methods by what they make", [{ title: "Name" }, { title: "Kind" }, { title: `Self, ${weight}`, number: true, hint: "made by it" }, { title: "Share", number: true }, { title: `Total, ${weight}`, number: true, hint: "made by it or under it" }, { title: "Share", number: true }], rows),
          ...(lines.length > FLAT ? [element("p", { class: "note" }, `${number(lines.length - FLAT)} more are left out; the CSV has them.`)] : []));
        drawn = { search: () => go({}, {}) };
      } else {
        const details = element("p", { class: "says", "aria-live": "polite" });
        const source = element("div");
        const place = element("div", { class: "flame" });
        const keys = element("p", { class: "keys" }, ...["program", "library", "jdk", "class"].map((kind) => element("span", { class: `key flame-${kind}` }, kind === "jdk" ? "JDK" : kind)));
        const reset = button("Reset zoom", () => drawn.reset(), { class: "small" });
        answer.replaceChildren(summary, element("div", { class: "bar" }, keys, reset), details, source, place);
        drawn = graphIn(place, details, source, root, weight);
        if (state.search) {
          drawn.search(state.search);
        }
      }
      foot(below, {
        command: graph.command,
        table: down === "callers" && (() => ({ name: "methods", columns, rows: flat(root).map(({ name, kind, self, total }) => [name, kind, self, total]) })),
        more: [
          ["Collapsed stacks", () => save("stacks.collapsed", "text/plain", collapsed(root))],
          ["pprof", () => open(address("stacks.pb.gz", { ...selection(state), ...of }), "_self")],
        ],
      });
    };
  },
};
