// One object: what it is, what it holds, who holds it, its way from a root, its life.
import { ask } from "./api.js";
import { button, code, element } from "./dom.js";
import { foot, frame, nothing, table } from "./parts.js";
import { linesOf } from "./source.js";
import { go, link } from "./state.js";
import { brief, briefSite, bytes, number, objects } from "./units.js";

/** What happens in a life, each in its row of the picture. */
const KINDS = {
  made: "made", stored: "stored into", cleared: "gone from", handed: "handed on", holds: "holds", drops: "drops", used: "last used", died: "died",
};
/** Marks that are closer than this part of the picture are one. */
const NEAR = 0.045;

const toObject = (id, name, more = {}) => element("a", { href: link({ view: "object", id, ...more }) }, element("code", { title: name }, `${brief(name)} `), element("span", { class: "id" }, id));
const fact = (name, ...value) => [element("dt", {}, name), element("dd", {}, ...value)];

const facts = ({ object, threadName, isAlive, retainedBytes, dominates }, clock) => element("dl", { class: "object-facts" },
  ...fact("class", code(object.class), " ", element("a", { class: "action", href: link({ view: "objects", class: object.class, site: "", context: "", thread: "", path: [], what: "alive" }) }, "others of it")),
  ...fact("size", bytes(object.size), object.length ? `, ${number(object.length)} elements` : ""),
  ...(isAlive && retainedBytes !== null ? fact("retains", `${bytes(retainedBytes)} `, element("a", { class: "action", href: link({ view: "dominators", of: object.id, open: [] }) }, `dominates ${objects(dominates ?? 0)}`)) : []),
  ...fact("made", object.thread ? `${clock.point(object.born)} by ${threadName ?? `thread ${object.thread}`} at ` : object.born.tick > 0 ? `${clock.point(object.born)} ` : "", code(object.site), linesOf(object.site),
    object.context.length ? element("details", {}, element("summary", {}, `called by ${briefSite(object.context[1] ?? object.context[0])}`), element("ol", { class: "stack" }, ...object.context.map((method) => element("li", {}, code(method))))) : null),
  ...fact("died", object.died ? `${clock.point(object.died)}, ${bytes(object.ageBytes)} allocated during its life` : "not before the end"));

/** Its life as a line for each kind of event; each mark leads to its moment. */
const life = ({ object, marks, moreMarks, leftOut, previous, next }, state, clock) => {
  const begin = marks[0]?.tick ?? object.born.tick;
  const end = object.died ? object.died.tick + 1 : clock.last;
  const part = (tick) => (end > begin ? Math.max(0, Math.min(1, (tick - begin) / (end - begin))) : 0);
  const kinds = Object.keys(KINDS).filter((kind) => marks.some((mark) => mark.kind === kind));
  const lanes = kinds.map((kind) => {
    const folded = [];
    for (const mark of marks.filter((one) => one.kind === kind)) {
      const last = folded.at(-1);
      if (last && part(mark.tick) - part(last.tick) < NEAR) {
        last.more += 1;
      } else {
        folded.push({ ...mark, more: 0 });
      }
    }
    const links = folded.map(({ tick, text, more, ...when }) => {
      const says = `${clock.point({ tick, ...when })}: ${text}${more ? `, and ${more} more` : ""}`;
      const place = element("a", { class: `life-mark ${kind}`, href: link({ at: String(tick) }), title: says, "aria-label": says, "aria-current": String(tick) === state.at ? "true" : null }, more ? String(more + 1) : "");
      place.style.left = `${part(tick) * 100}%`;
      return place;
    });
    return element("div", { class: "lane" }, element("span", { class: "lane-name" }, KINDS[kind]), element("div", { class: "lane-line" }, ...links));
  });
  const at = clock.tickOf(state.at);
  const now = element("div", { class: "life-now", title: "T" });
  now.style.left = `${part(at) * 100}%`;
  const step = (name, tick) => button(name, () => go({ at: String(tick) }), { disabled: tick === null || tick === undefined });
  const words = element("details", { class: "life-words" }, element("summary", {}, `In words: ${number(marks.length)} change${marks.length === 1 ? "" : "s"}${moreMarks ? `, ${number(moreMarks)} more are left out` : ""}`),
    element("ol", {}, ...marks.map((mark) => element("li", {}, element("a", { href: link({ at: String(mark.tick) }) }, clock.point(mark)), ` ${mark.text}`))));
  return element("section", { class: "life" },
    element("h3", {}, "Life"),
    element("p", { class: "steps" }, step("◂ previous change", previous), " ", step("next change ▸", next), " ", element("span", { class: "note" }, `T: ${clock.when(state.at)}`)),
    element("div", { class: "lanes" }, ...lanes, element("div", { class: "lane-over" }, ...(at >= begin && at <= end ? [now] : [])),
      element("div", { class: "lane" }, element("span", { class: "lane-name" }), element("div", { class: "life-axis" }, element("span", {}, clock.when(String(begin))), element("span", {}, object.died ? clock.when(String(end)) : "the end")))),
    words,
    leftOut ? element("p", { class: "note" }, `${number(leftOut)} references of its life are left out; et-trace object tells more of them.`) : null);
};

const references = (caption, title, all, more, empty, clock, isHolder) => {
  if (all.length === 0) {
    return element("section", {}, element("h3", {}, title), nothing(empty));
  }
  const rows = all.map(({ slot, other, since }) => element("tr", {},
    element("th", { scope: "row" }, element("code", { title: slot }, briefSite(slot))),
    element("td", {}, other ? toObject(other.id, other.class) : isHolder ? "static field" : "null"),
    element("td", { class: "number" }, since ? element("a", { href: link({ at: String(since.tick + 1) }), title: "Go to the moment at which it was stored" }, clock.point(since)) : "the start"),
    element("td", {}, since ? [since.context[0] ? element("code", { title: since.context.join("\n← ") }, briefSite(since.context[0])) : "", since.threadName ? ` ${since.threadName}` : ""] : "")));
  const columns = [{ title: "Slot" }, { title: isHolder ? "Held by" : "Holds" }, { title: "Since", number: true }, { title: "Stored in" }];
  return element("section", {}, element("h3", {}, title), table(caption, columns, rows), more ? element("p", { class: "note" }, `${number(more)} more are left out.`) : null);
};

/** From the root down to it. */
const path = ({ path: way, isAlive, object }) => {
  const steps = way ? [
    element("li", { class: "root" }, element("strong", {}, way.root)),
    ...way.steps.map((step, at) => element("li", { class: step.object === object.id ? "itself" : null },
      element("span", { class: "via" }, step.via ? (step.via.startsWith("[") ? step.via : `.${step.via.replace(/^\./, "").split(".").at(-1)}`) : "↓"), " ", toObject(step.object, step.class))),
  ] : [];
  return element("section", { class: "way" }, element("h3", {}, "Path from its root"),
    way ? element("ol", { class: "chain" }, ...steps) : nothing(isAlive ? "No path from a root is known." : "It is not alive at T."));
};

const dominators = ({ dominators: above }) => element("section", {}, element("h3", {}, "Dominators"),
  above.length ? element("ol", { class: "chain upward" }, ...above.map((one) => element("li", {}, element("span", { class: "via" }, "↑"), " ", toObject(one.id, one.class), ` ${bytes(one.retainedBytes)}`)))
    : nothing("Nothing dominates it."));

export const object = {
  id: "object",
  name: "Object",
  make: (panel, app) => {
    const { heading, controls, answer, foot: below } = frame(panel, "Object");
    const input = element("input", { type: "search", spellcheck: "false", autocomplete: "off", placeholder: "1f3a" });
    controls.append(element("form", { onsubmit: (event) => {
      event.preventDefault();
      go({ id: input.value.trim().replace(/^0x/i, "").toLowerCase() });
    } }, element("label", {}, "Id ", input), " ", element("button", { type: "submit" }, "Show")));
    return async (state, signal) => {
      if (input !== document.activeElement) {
        input.value = state.id;
      }
      if (!state.id) {
        heading.textContent = "Object";
        answer.replaceChildren(nothing("Choose one: in Groups, Objects or Dominators, or by its id."));
        below.replaceChildren();
        return;
      }
      const clock = app.clock();
      const found = await ask("object", { trace: state.trace, id: state.id, at: state.at }, signal);
      const { object: its, isAlive } = found;
      // Of the object of a class, the path says which class.
      const name = found.path?.steps.at(-1)?.class ?? its.class;
      heading.replaceChildren(element("code", { title: name }, brief(name)), " ", element("span", { class: "id" }, its.id), " ",
        element("span", { class: `badge ${isAlive ? "alive" : "dead"}` }, isAlive ? "alive at T" : its.died && its.died.tick < clock.tickOf(state.at) ? "dead at T" : "not alive at T"));
      answer.replaceChildren(
        element("div", { class: "two" }, facts(found, clock), life(found, state, clock)),
        element("div", { class: "two" },
          references("Who holds it at T", "Held by", found.holders, found.moreHolders, "No object and no static field holds it at T.", clock, true),
          path(found)),
        element("div", { class: "two" },
          references("What its slots hold at T", "Holds", found.slots, found.moreSlots, "Its slots hold nothing at T.", clock, false),
          dominators(found)),
        element("details", { class: "text" }, element("summary", {}, "Its life as text"), element("pre", {}, found.life)),
      );
      foot(below, {
        command: found.command,
        table: () => ({
          name: `object-${its.id}`,
          columns: ["what", "slot", "id", "class", "sinceTick", "storedIn"],
          rows: [["holds", found.slots], ["held by", found.holders]].flatMap(([what, all]) =>
            all.map(({ slot, other, since }) => [what, slot, other?.id, other?.class, since?.tick, since?.context[0]])),
        }),
      });
    };
  },
};
