// The grouping tree.
import { ask } from "./api.js";
import { button, code, element, say } from "./dom.js";
import { amount, curve, foot, frame, nothing } from "./parts.js";
import { chosen, selecting } from "./selecting.js";
import { lineOf } from "./source.js";
import { go, link, selection } from "./state.js";
import { treeTable } from "./tree.js";
import { bytes, number, objects, percent } from "./units.js";

const LEVELS = {
  package: "package", class: "class", site: "site", context: "context", thread: "thread", age: "age", fate: "fate", owner: "owner",
};
const HINTS = {
  package: "the package of the class", class: "the class", site: "where it was made", context: "the methods that were running when it was made",
  thread: "who made it", age: "how much was allocated since it was made", fate: "whether it is used again, and whether it dies",
  owner: "the nearest object of the program that dominates it; known of what is alive at T",
};

/** Chips of the levels: in their order, each with what moves and removes it; then those that can be added. */
const chips = (place, levels, isAlive) => {
  const change = (by, says) => {
    go({ by: by.join(","), path: [], open: [] });
    say(says);
  };
  const moved = (from, to) => {
    const by = [...levels];
    by.splice(to, 0, ...by.splice(from, 1));
    change(by, `${LEVELS[levels[from]]} is level ${to + 1}`);
  };
  const used = levels.map((level, at) => {
    const name = LEVELS[level] ?? level;
    const small = (text, label, does, more = {}) => button(text, does, { "aria-label": label, title: label, class: "small", ...more });
    const chip = element("li", { class: "chip", draggable: "true", title: HINTS[level] },
      small("◂", `Move ${name} up`, () => moved(at, at - 1), { disabled: at === 0 }),
      element("span", {}, `${at + 1} ${name}`),
      small("▸", `Move ${name} down`, () => moved(at, at + 1), { disabled: at === levels.length - 1 }),
      small("✕", `Do not group by ${name}`, () => change(levels.filter((_, other) => other !== at), `not grouped by ${name}`), { disabled: levels.length === 1 }));
    chip.addEventListener("dragstart", (event) => event.dataTransfer.setData("text/plain", String(at)));
    chip.addEventListener("dragover", (event) => event.preventDefault());
    chip.addEventListener("drop", (event) => {
      event.preventDefault();
      const from = Number(event.dataTransfer.getData("text/plain"));
      if (Number.isInteger(from) && from !== at && from < levels.length) {
        moved(from, at);
      }
    });
    return chip;
  });
  const others = Object.keys(LEVELS).filter((level) => !levels.includes(level) && (isAlive || level !== "owner"));
  place.replaceChildren(
    element("legend", {}, "Grouped by"),
    element("ol", { class: "chips" }, ...used),
    element("span", { class: "chips" }, ...others.map((level) =>
      button(`+ ${LEVELS[level]}`, () => change([...levels, level], `grouped by ${LEVELS[level]} as well`), { class: "chip add", title: HINTS[level] }))),
  );
};

export const groups = {
  id: "groups",
  name: "Groups",
  make: (panel, app) => {
    const { controls, answer, foot: below } = frame(panel, "Groups of objects");
    const levelsPlace = element("fieldset");
    const tell = selecting(controls, "groups", app.trace);
    controls.append(levelsPlace);
    return async (state, signal) => {
      const isAlive = state.what === "alive";
      const levels = state.by.split(",").filter((level) => isAlive || level !== "owner");
      tell(state);
      const active = document.activeElement;
      const label = levelsPlace.contains(active) ? active.getAttribute("aria-label") ?? active.textContent : null;
      chips(levelsPlace, levels, isAlive);
      if (label) {
        const same = [...levelsPlace.querySelectorAll("button:not([disabled])")];
        (same.find((one) => (one.getAttribute("aria-label") ?? one.textContent) === label) ?? same[0])?.focus();
      }
      const by = levels.join(",") || "class";
      const question = { ...selection(state), by };
      const whole = await ask("tree", question, signal);
      const total = whole.total;
      const hasRetained = whole.lines.some((line) => line.retainedBytes !== null && line.retainedBytes !== undefined);
      const hasCurve = whole.lines.some((line) => line.curve);
      const most = hasRetained ? Math.max(0, ...whole.lines.map((line) => line.retainedBytes ?? 0)) : 0;
      const toObjects = (path) => link({ view: "objects", path, by });
      const columns = [
        { title: "Objects", number: true, cell: (line, path) => element("a", { href: toObjects(path), "aria-label": `${objects(line.objects)}: list them` }, number(line.objects)) },
        { title: "Bytes", number: true, cell: (line) => amount(bytes(line.bytes), line.bytes, total.bytes) },
        { title: "Share", number: true, cell: (line) => percent(line.bytes, total.bytes) },
        ...(hasRetained ? [{ title: "Retained", number: true, hint: "what would be freed with them", cell: (line) => line.retainedBytes === null ? "" : amount(bytes(line.retainedBytes), line.retainedBytes, Math.max(most, whole.retainedBytes ?? 0)) }] : []),
        ...(hasCurve ? [{ title: "Over the run", cell: (line) => line.curve ? curve(line.curve, `alive over the run, at most ${bytes(Math.max(0, ...line.curve))}, at the end ${bytes(line.curve.at(-1) ?? 0)}`) : "" }] : []),
      ];
      const tree = await treeTable({
        caption: `Groups of what is ${chosen(state, app.clock())}`,
        first: levels.map((level) => LEVELS[level] ?? level).join(" › "),
        columns,
        name: (line, path) => {
          const name = element("a", { href: toObjects(path), class: "to-objects" }, code(line.name));
          return levels[path.length - 1] === "site" ? element("span", {}, name, lineOf(line.key)) : name;
        },
        nameText: (line) => line.name,
        key: (line) => line.key,
        isLeaf: (_, path) => path.length >= levels.length,
        children: async (path, top, signal) => ask("tree", { ...question, path, top }, signal),
        open: state.open,
        onOpen: (open) => go({ open }, { replace: true, quiet: true }),
      }, signal);
      const summary = element("p", { class: "summary" }, `${objects(total.objects)}, ${bytes(total.bytes)} ${chosen(state, app.clock())}. `,
        element("a", { class: "action", href: link({ view: "objects", path: [], by }) }, "Objects"), " ",
        element("a", { class: "action", href: link({ view: "flame", path: [] }) }, "Flame graph"));
      answer.replaceChildren(summary, total.objects > 0 ? tree.place : nothing("There are no such objects."));
      foot(below, {
        command: whole.command,
        table: () => ({
          name: "groups",
          columns: [...levels, "objects", "bytes", "retainedBytes"],
          rows: tree.rows().map(({ line, path }) => [...levels.map((_, at) => path[at] ?? null), line.objects, line.bytes, line.retainedBytes]),
        }),
      });
    };
  },
};
