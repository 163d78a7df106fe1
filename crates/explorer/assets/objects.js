// The objects of a group, as rows that are made only where they are seen.
import { ask } from "./api.js";
import { button, code, element } from "./dom.js";
import { foot, frame, nothing } from "./parts.js";
import { virtualRows } from "./rows.js";
import { chosen, selecting } from "./selecting.js";
import { briefLineOf } from "./source.js";
import { go, link, selection } from "./state.js";
import { brief, briefSite, bytes, number, objects as count } from "./units.js";

const PAGE = 200;
/** Rows that a saved table has at most. */
const SAVED = 10_000;

export const objects = {
  id: "objects",
  name: "Objects",
  make: (panel, app) => {
    const { controls, answer, foot: below } = frame(panel, "Objects");
    const tell = selecting(controls, "objects", app.trace);
    let leave = null;
    return async (state, signal) => {
      tell(state);
      const clock = app.clock();
      const isAlive = state.what === "alive";
      const sort = !isAlive && state.sort === "retained" ? "size" : state.sort;
      const question = { ...selection(state), by: state.by, path: state.path, sort };
      const page = (at, signal) => ask("objects", { ...question, offset: at * PAGE, limit: PAGE }, signal);
      const first = await page(0, signal);
      leave?.();

      const columns = [
        { title: "Object", wide: 6, cell: (one) => element("a", { href: link({ view: "object", id: one.id }), class: "to-object" }, code(one.id)) },
        { title: "Class", wide: 13, cell: (one) => element("code", { title: one.class }, brief(one.class), one.length ? ` ×${number(one.length)}` : "") },
        { title: "Size", sort: "size", wide: 6, number: true, cell: (one) => bytes(one.size) },
        ...(isAlive ? [{ title: "Retained", sort: "retained", wide: 7, number: true, cell: (one) => one.retainedBytes === null || one.retainedBytes === undefined ? "" : bytes(one.retainedBytes) }] : []),
        { title: "Made at", wide: 16, cell: (one) => element("code", { title: [one.site, ...one.context].join("\n← ") }, briefSite(one.site)) },
        ...(app.trace().hasSources ? [{ title: "Source", wide: 20, cell: (one) => briefLineOf(one.site) ?? "" }] : []),
        { title: "Age", sort: "age", wide: 7, number: true, hint: "bytes allocated during its life", cell: (one) => bytes(one.ageBytes) },
        { title: "Born", sort: "birth", wide: 7, number: true, cell: (one) => clock.point(one.born) },
        { title: "Died", sort: "death", wide: 7, number: true, cell: (one) => (one.died ? clock.point(one.died) : "–") },
...(app.trace().hasUses ? [{ title: "Drag", sort: "drag", wide: 6, number: true, hint: "calls and returns between its last use and its death", cell: (one) => one.dragTicks === null ? "" : number(one.dragTicks) }] : []),
        { title: "Thread", wide: 6, cell: (one) => app.threadName(one.thread) },
      ];
      const pages = new Map([[0, first.objects]]);
      const found = first.found.objects;
      const caption = `${count(found)}, ${bytes(first.found.bytes)} ${chosen(state, clock)}`;
      const way = state.path.length ? element("p", { class: "crumbs" }, element("a", { href: link({ view: "groups", path: [] }) }, "Groups"), ...state.path.flatMap((key) => [" › ", code(key)]), " ",
        button("all objects", () => go({ path: [] }), { class: "small" })) : null;
      if (found === 0) {
        leave = null;
        answer.replaceChildren(...[way].filter(Boolean), nothing("There are no such objects."));
        foot(below, { command: first.command });
        return;
      }

      const heading = ({ title, sort: by, number, hint }) =>
        element("th", { scope: "col", class: number ? "number" : null, title: hint, "aria-sort": by === sort ? "descending" : null },
          by ? button(title, () => go({ sort: by }, { replace: true }), { class: "sort" }) : title);
      const wanted = new Set();
      const want = async (at) => {
        if (wanted.has(at) || pages.has(at)) {
          return;
        }
        wanted.add(at);
        try {
          pages.set(at, (await page(at, signal)).objects);
          rows.draw();
        } catch (error) {
          if (!signal.aborted) {
            app.fail(error);
          }
        } finally {
          wanted.delete(at);
        }
      };
      const rows = virtualRows({
        label: "Objects, table",
        caption,
        count: found,
        columns: columns.map((column) => ({ ...column, heading: heading(column) })),
        row: (index) => {
          const one = pages.get(Math.floor(index / PAGE))?.[index % PAGE];
          if (!one) {
            want(Math.floor(index / PAGE));
          }
          return one;
        },
      });
      answer.replaceChildren(...[way].filter(Boolean), element("p", { class: "summary" }, `${caption}.`), rows.place);
      leave = rows.begin();

      const saved = ["id", "class", "size", "retainedBytes", "length", "site", "thread", "bornTick", "diedTick", "ageBytes", "dragTicks"];
      foot(below, {
        command: first.command,
        table: () => ({
          name: "objects",
          columns: saved,
          rows: [...pages].sort(([one], [other]) => one - other).flatMap(([, objects]) => objects).slice(0, SAVED)
            .map((one) => [one.id, one.class, one.size, one.retainedBytes, one.length, one.site, one.thread, one.born?.tick, one.died?.tick, one.ageBytes, one.dragTicks]),
        }),
      });
    };
  },
};
