// Lines of source at sites, if et-trace open was given where sources are.
import { ask } from "./api.js";
import { all, element } from "./dom.js";

/** Sites in one question. */
const AT_ONCE = 50;

let trace = null;
const known = new Map();

/** The trace whose sites are shown from now on; `null`: no sources were given. */
export const showSourcesOf = (number) => {
  trace = number;
  known.clear();
};

const place = (site, kind) => (trace === null || !site ? null : element("span", { class: "source-of", "data-site": site, "data-kind": kind }));
/** The line of a site, which opens those around it. It comes when it is known; a site without one stays as it is. */
export const lineOf = (site) => place(site, "line");
/** The same, opened. */
export const linesOf = (site) => place(site, "open");
/** The line alone, where there is no room for more; those around it are in its tooltip. */
export const briefLineOf = (site) => place(site, "brief");

const numbered = ({ first, line, lines }) => lines.map((text, at) => `${first + at === line ? "▶" : " "} ${first + at}  ${text}`).join("\n");

const filled = (excerpt, kind) => {
  const { file, line, first, lines } = excerpt;
  const text = element("code", {}, (lines[line - first] ?? "").trim());
  if (kind === "brief") {
    text.title = `${file}:${line}\n${numbered(excerpt)}`;
    return text;
  }
  return element("details", { class: "source", open: kind === "open" },
    element("summary", {}, text),
    element("p", { class: "file" }, `${file}:${line}`),
    element("pre", { tabindex: "0", role: "group", "aria-label": `Around ${file}:${line}` },
      ...lines.map((one, at) => element("span", { class: first + at === line ? "line here" : "line", "data-line": first + at }, `${one}\n`))));
};

const fill = (places) => {
  for (const one of places) {
    const excerpt = known.get(one.dataset.site);
    if (excerpt && !one.hasChildNodes()) {
      one.append(filled(excerpt, one.dataset.kind));
    }
  }
};

/** Asks for the lines of what has come to be shown. */
const show = async () => {
  const places = all(".source-of:empty").filter((one) => known.get(one.dataset.site) !== null);
  const of = trace;
  const wanted = [...new Set(places.map((one) => one.dataset.site))].filter((site) => !known.has(site));
  // Nobody asks twice for what is on its way.
  wanted.forEach((site) => known.set(site, undefined));
  fill(places);
  for (let at = 0; at < wanted.length; at += AT_ONCE) {
    const sites = wanted.slice(at, at + AT_ONCE);
    try {
      const { lines } = await ask("source", { trace: of, name: sites });
      if (of !== trace) {
        return;
      }
      sites.forEach((site) => known.set(site, lines[site] ?? null));
    } catch {
      // The page is of use without; the view itself says that et-trace does not answer.
      sites.forEach((site) => known.delete(site));
      return;
    }
    fill(all(".source-of:empty"));
  }
};

let isDue = false;
new MutationObserver(() => {
  if (trace !== null && !isDue) {
    isDue = true;
    queueMicrotask(() => {
      isDue = false;
      show();
    });
  }
}).observe(document.getElementById("views"), { childList: true, subtree: true });
