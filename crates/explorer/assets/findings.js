// What stands out: the first page.
import { ask } from "./api.js";
import { breakable, element } from "./dom.js";
import { curve, foot, frame, nothing } from "./parts.js";
import { lineOf } from "./source.js";
import { link } from "./state.js";
import { bytes } from "./units.js";

const WEIGHTS = { high: "look here", medium: "worth a look", low: "good to know" };

const card = (finding) => {
  const { title, text, weight, class: ofClass, site, object } = finding;
  const moment = { at: "end", what: "alive", path: [], open: [], class: ofClass ?? "", site: site ?? "", context: "", thread: "" };
  const ways = [];
  if (object) {
    ways.push(["The object", { view: "object", id: object, at: "end" }], ["What it holds", { view: "dominators", of: object, at: "end" }]);
  }
  if (ofClass || site) {
    ways.push(["In groups", { ...moment, view: "groups", by: ofClass ? "site,context" : "class,context" }], ["Objects", { ...moment, view: "objects", sort: object ? "retained" : "size" }],
      ["Who makes them", { ...moment, view: "flame", down: "callers" }]);
  }
  if (ways.length === 0) {
    ways.push(["What is alive, by fate", { ...moment, view: "groups", by: "fate,class,site" }],
      ["What died, by site", { ...moment, view: "groups", what: "died", from: "0", to: "end", by: "site,class" }]);
  }
  return element("article", { class: `finding ${weight}` },
    element("h3", {}, ...breakable(title)),
    element("p", { class: "weight" }, WEIGHTS[weight] ?? weight, finding.bytes ? ` · ${bytes(finding.bytes)}` : ""),
    finding.curve ? curve(finding.curve, `over the run, ${bytes(finding.curve.at(-1) ?? 0)} at the end`) : null,
    element("p", {}, ...breakable(text)),
    lineOf(site),
    element("p", { class: "ways" }, ...ways.map(([name, to]) => element("a", { class: "action", href: link(to) }, name))));
};

/** What the trace does not have, and what to do to have it. */
const lacking = (lacks) => (lacks.length === 0 ? [] : [element("details", { class: "lacks" },
  element("summary", {}, "What this trace cannot tell"),
  element("ul", {}, ...lacks.map(({ what, why, remedy }) => element("li", {}, element("strong", {}, what), `: ${why}; ${remedy}.`))))]);

export const findings = {
  id: "findings",
  name: "Findings",
  make: (panel) => {
    const { answer, foot: below } = frame(panel, "What stands out");
    return async (state, signal) => {
      const { findings: all, command, lacks } = await ask("findings", { trace: state.trace }, signal,
        () => answer.replaceChildren(nothing("Being worked out: the first time, this reads the whole trace. All other views can be used meanwhile.")));
      const list = element("div", { class: "findings" }, ...all.map(card));
      answer.replaceChildren(all.length ? list : nothing("Nothing stands out."), ...lacking(lacks ?? []));
      const columns = ["weight", "title", "text", "class", "site", "object", "bytes"];
      foot(below, { command, table: () => ({ name: "findings", columns, rows: all.map((one) => columns.map((column) => one[column])) }) });
    };
  },
};
