// The dominator tree at T, opened level by level.
import { ask } from "./api.js";
import { button, code, element } from "./dom.js";
import { amount, foot, frame, nothing } from "./parts.js";
import { briefLineOf } from "./source.js";
import { go, link } from "./state.js";
import { treeTable } from "./tree.js";
import { brief, briefSite, bytes, number, objects, percent } from "./units.js";

export const dominators = {
  id: "dominators",
  name: "Dominators",
  make: (panel, app) => {
    const { answer, foot: below } = frame(panel, "What keeps what alive");
    return async (state, signal) => {
      const whole = await ask("dominators", { trace: state.trace, at: state.at, of: state.of, limit: 100 }, signal);
      const most = whole.of?.retainedBytes ?? whole.heap.bytes;
      const tree = await treeTable({
        caption: `Dominator tree at ${app.clock().when(state.at)}`,
        first: "Object",
        columns: [
          { title: "Retained", number: true, hint: "what would be freed with it", cell: (line) => amount(bytes(line.retainedBytes), line.retainedBytes, most) },
          { title: "Share", number: true, hint: "of all that is alive", cell: (line) => percent(line.retainedBytes, whole.heap.bytes) },
          { title: "Own size", number: true, cell: (line) => bytes(line.bytes) },
          { title: "Dominates", number: true, hint: "objects that it dominates immediately", cell: (line) => number(line.dominates) },
          { title: "Held by", cell: (line) => (line.heldBy ? code(line.heldBy) : "") },
          { title: "Made at", cell: (line) => (line.site ? [element("code", { title: line.site }, briefSite(line.site)), briefLineOf(line.site)] : "") },
        ],
        name: (line) => element("a", { href: link({ view: "object", id: line.id }) }, element("code", { title: line.class }, brief(line.class)), " ", element("span", { class: "id" }, line.id)),
        nameText: (line) => `${line.class} ${line.id}`,
        key: (line) => line.id,
        isLeaf: (line) => line.dominates === 0,
        children: async (path, top, signal) => {
          const found = await ask("dominators", { trace: state.trace, at: state.at, of: path.at(-1) ?? state.of, limit: top }, signal);
          return { lines: found.lines, more: found.all - found.lines.length };
        },
        open: state.open,
        onOpen: (open) => go({ open }, { replace: true, quiet: true }),
      }, signal);
      const of = whole.of ? [
        "below ", element("a", { href: link({ view: "object", id: whole.of.id }) }, element("code", { title: whole.of.class }, brief(whole.of.class)), " ", element("span", { class: "id" }, whole.of.id)),
        `, which retains ${bytes(whole.of.retainedBytes)} `, button("whole heap", () => go({ of: "", open: [] }), { class: "small" })] : [];
      answer.replaceChildren(
        element("p", { class: "summary" }, `${objects(whole.heap.objects)}, ${bytes(whole.heap.bytes)} alive${of.length ? "; " : ". "}`, ...of, " ",
          element("a", { class: "action", href: link({ view: "treemap" }) }, "As a map")),
        whole.lines.length ? tree.place : nothing("It dominates nothing."));
      foot(below, {
        command: whole.command,
        table: () => ({
          name: "dominators",
          columns: ["level", "id", "class", "site", "bytes", "retainedBytes", "heldBy", "dominates"],
          rows: tree.rows().map(({ line, path }) => [path.length, line.id, line.class, line.site, line.bytes, line.retainedBytes, line.heldBy, line.dominates]),
        }),
      });
    };
  },
};
