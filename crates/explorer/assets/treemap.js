// The dominator tree as boxes in boxes.
import { ask } from "./api.js";
import { button, element } from "./dom.js";
import { foot, frame, nothing } from "./parts.js";
import { go, link } from "./state.js";
import { brief, bytes, percent } from "./units.js";

/** Levels that are seen at once. */
const LEVELS = 3;
const HEAD = 18;

/** The way from the top to the box of an object. */
const wayTo = (box, id) => {
  if (box.id === id) {
    return [box];
  }
  for (const child of box.children ?? []) {
    const way = wayTo(child, id);
    if (way) {
      return [box, ...way];
    }
  }
  return null;
};
const nameOf = (box) => (box.id ? `${brief(box.name)} ${box.id}` : box.name);

export const treemap = {
  id: "treemap",
  name: "Treemap",
  make: (panel) => {
    const { answer, foot: below } = frame(panel, "Map of the heap");
    return async (state, signal) => {
      const whole = await ask("treemap", { trace: state.trace, at: state.at }, signal);
      const way = (state.of && wayTo(whole, state.of)) || [whole];
      const root = way.at(-1);
      const says = element("p", { class: "says", "aria-live": "polite" });
      const tell = (box) => {
        says.replaceChildren(`${nameOf(box)}: retains ${bytes(box.bytes)}, ${percent(box.bytes, whole.bytes)} of the heap `,
          ...(box.id ? [element("a", { class: "action", href: link({ view: "object", id: box.id }) }, "Open the object")] : []));
      };
      const crumbs = element("p", { class: "crumbs" }, ...way.flatMap((box, at) => [
        ...(at > 0 ? [" › "] : []),
        at === way.length - 1 ? element("strong", {}, nameOf(box)) : button(nameOf(box), () => go({ of: at === 0 ? "" : box.id }), { class: "small" })]));
      if (!root.bytes || !(root.children ?? []).length) {
        answer.replaceChildren(crumbs, says, nothing(root.bytes ? "It dominates nothing that is large enough to be seen." : "Nothing is alive at T."));
        tell(root);
        foot(below, { command: whole.command });
        return;
      }
      const map = element("div", { class: "map", role: "group", "aria-label": "Map of the heap: the larger a box, the more it retains" });
      answer.replaceChildren(crumbs, says, map);
      const width = document.documentElement.classList.contains("printing") ? 700 : Math.max(280, map.clientWidth);
      const height = Math.max(320, Math.min(620, window.innerHeight - 330));
      map.style.height = `${height}px`;
      // A box is as large as what is in it and what is its own.
      const tree = libraries.hierarchy(root).each((node) => {
        const inside = (node.data.children ?? []).reduce((sum, child) => sum + child.bytes, 0);
        node.value = Math.max(node.data.bytes, inside);
      });
      libraries.treemap().size([width, height]).paddingInner(1).paddingOuter(2).paddingTop(HEAD).round(true)(tree);
      for (const node of tree.descendants()) {
        const { x0, x1, y0, y1, depth, data } = node;
        const wide = x1 - x0, high = y1 - y0;
        if (depth === 0 || depth > LEVELS || wide < 4 || high < 4) {
          continue;
        }
        const canZoom = Boolean(data.id && data.children?.length);
        const name = data.id ? brief(data.name) : data.name;
        // Begins with what is written in the box.
        const label = `${name} · ${bytes(data.bytes)}, ${percent(data.bytes, whole.bytes)}${data.id ? `, object ${data.id}` : ""}`;
        const parent = node.parent.data.id ?? "";
        const open = () => (canZoom ? go({ of: data.id }) : data.id ? go({ view: "object", id: data.id }) : go({ view: "dominators", of: parent, open: [] }));
        const box = button("", open, { class: `box level-${depth}${data.id ? "" : " others"}`, title: `${label}${canZoom ? "" : data.id ? " (opens the object)" : " (opens the list)"}`, "aria-label": label, onfocus: () => tell(data), onpointerenter: () => tell(data) });
        if (wide > 40 && high >= 14) {
          box.append(element("span", {}, name, wide > 150 ? ` · ${bytes(data.bytes)}` : ""));
        }
        Object.assign(box.style, { left: `${x0}px`, top: `${y0 - HEAD}px`, width: `${wide}px`, height: `${high}px` });
        map.append(box);
      }
      map.style.height = `${height - HEAD}px`;
      map.addEventListener("keydown", (event) => {
        const boxes = [...map.children];
        const at = boxes.indexOf(document.activeElement);
        const to = { ArrowRight: at + 1, ArrowDown: at + 1, ArrowLeft: at - 1, ArrowUp: at - 1 }[event.key];
        if (to !== undefined && boxes[to]) {
          event.preventDefault();
          boxes[to].focus();
        } else if (event.key === "Escape" && way.length > 1) {
          go({ of: way.length > 2 ? way.at(-2).id : "" });
        }
      });
      tell(root);
      foot(below, {
        command: whole.command,
        table: () => ({
          name: "treemap",
          columns: ["level", "id", "name", "retainedBytes"],
          rows: tree.descendants().map(({ depth, data }) => [depth, data.id, data.name, data.bytes]),
        }),
      });
    };
  },
};
