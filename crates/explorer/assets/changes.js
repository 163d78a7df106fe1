// Two moments side by side: what came, what went, what stayed.
import { ask } from "./api.js";
import { choice, choose, code, element } from "./dom.js";
import { foot, frame, nothing, table } from "./parts.js";
import { lineOf } from "./source.js";
import { go, link } from "./state.js";
import { bytes, number, objects, signed } from "./units.js";

const BYS = [["class", "class"], ["site", "site"], ["context", "context"], ["root", "root"]];

/** To the left: less; to the right: more. */
const growth = (bytesMore, most) => {
  const made = element("span", { class: "growth", "aria-hidden": "true" }, element("span", { class: bytesMore < 0 ? "less" : "more" }));
  const bar = made.firstChild;
  const half = most > 0 ? (Math.abs(bytesMore) * 50) / most : 0;
  bar.style.width = `${half}%`;
  bar.style.left = bytesMore < 0 ? `${50 - half}%` : "50%";
  return made;
};
/** The site of `shop.Page at shop.Cart.page:25`. */
const siteOf = (name) => name.slice(name.indexOf(" at ") + 4);
const cell = (amount, sign, title) => element("td", { class: "number" }, amount.objects ? `${sign}${bytes(amount.bytes)}` : "", amount.objects ? element("span", { class: "of" }, ` ${number(amount.objects)}`) : "");

export const changes = {
  id: "changes",
  name: "Changes",
  make: (panel, app) => {
    const { controls, answer, foot: below } = frame(panel, "What changed in the range");
    controls.append(choice("By", "changes-by", BYS, "class", (compare) => go({ compare })));
    return async (state, signal) => {
      choose(controls, "changes-by", state.compare);
      const clock = app.clock();
      const { from, to, compare: by } = state;
      const found = await ask("changes", { trace: state.trace, from, to, by, top: 200 }, signal);
      const { came, went, stayed } = found.all;
      const most = Math.max(0, ...found.lines.map((line) => Math.abs(line.growthBytes)));
      const name = (line) => (by === "class" ? element("a", { href: link({ view: "objects", what: "alive", at: to, class: line.name, site: "", context: "", path: [] }), title: "The objects that are alive when the range ends" }, code(line.name)) : code(line.name));
      const rows = found.lines.map((line) => element("tr", {},
        element("th", { scope: "row" }, name(line), by === "site" ? lineOf(siteOf(line.name)) : null),
        element("td", { class: "number" }, signed(line.growthBytes, bytes)),
        element("td", { class: "growth-cell" }, growth(line.growthBytes, most)),
        cell(line.came, "+"), cell(line.went, "−"), cell(line.stayed, "")));
      const columns = [{ title: "What" }, { title: "Growth", number: true }, { title: "less · more" }, { title: "Came", number: true }, { title: "Went", number: true }, { title: "Stayed", number: true }];
      const more = found.allLines - found.lines.length;
      const all = came.bytes + went.bytes + stayed.bytes;
      const part = (kind, title, amount) => {
        const made = element("span", { class: kind }, `${title} ${bytes(amount.bytes)}`);
        made.style.flexGrow = String(all ? Math.max(0.02, amount.bytes / all) : 1);
        made.title = `${objects(amount.objects)} ${title}`;
        return made;
      };
      answer.replaceChildren(
        element("p", { class: "summary" }, `From ${clock.when(from)} to ${clock.when(to)}: ${objects(came.objects)} came, ${number(went.objects)} went, ${number(stayed.objects)} stayed. `,
          element("a", { class: "action", href: link({ view: "groups", what: "made", path: [], open: [] }) }, "All that was made"), " ",
          element("a", { class: "action", href: link({ view: "groups", what: "died", path: [], open: [] }) }, "All that died")),
        element("div", { class: "parts" }, part("stayed", "stayed", stayed), part("came", "came", came), part("went", "went", went)),
        ...(from === "0" ? [element("p", { class: "note" }, "The range begins with the run: choose one on the timeline to compare two moments.")] : []),
        rows.length ? table("What came, went and stayed", columns, rows) : nothing("Nothing changed."),
        ...(more > 0 ? [element("p", { class: "note" }, `${number(more)} more are left out.`)] : []));
      foot(below, {
        command: found.command,
        table: () => ({
          name: "changes",
          columns: ["name", "growthBytes", "cameObjects", "cameBytes", "wentObjects", "wentBytes", "stayedObjects", "stayedBytes"],
          rows: found.lines.map((line) => [line.name, line.growthBytes, line.came.objects, line.came.bytes, line.went.objects, line.went.bytes, line.stayed.objects, line.stayed.bytes]),
        }),
      });
    };
  },
};
