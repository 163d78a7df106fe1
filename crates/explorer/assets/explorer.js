// The explorer: what is in the address is asked and shown.
import { ask, address } from "./api.js";
import { all, byId, choice, element, focusIn, later, say } from "./dom.js";
import { AXES, clockOf } from "./clock.js";
import { failure, focusOn, title } from "./parts.js";
import { go, link, onChange, state } from "./state.js";
import { showSourcesOf } from "./source.js";
import { timeline } from "./timeline.js";
import { findings } from "./findings.js";
import { groups } from "./groups.js";
import { objects } from "./objects.js";
import { object } from "./object.js";
import { dominators } from "./dominators.js";
import { treemap } from "./treemap.js";
import { changes } from "./changes.js";
import { flame } from "./flame.js";
import { sql } from "./sql.js";

const VIEWS = [findings, groups, objects, object, dominators, treemap, changes, flame, sql];

let traces = [];
let clock = null;
let controller = null;
const views = new Map();

const app = {
  trace: () => traces[Number(state().trace)] ?? traces[0],
  clock: () => clock,
  threadName: (thread) => app.trace().threads.find((one) => one.thread === thread)?.name ?? (thread ? `thread ${thread}` : ""),
  fail: (error) => {
    const { panel } = views.get(state().view);
    panel.querySelector(".answer").replaceChildren(failure(error.message));
    panel.querySelector(".foot").replaceChildren();
  },
};

// ---- Views ----

const tabs = VIEWS.map(({ id, name, make }) => {
  const tab = element("a", { role: "tab", id: `tab-${id}`, "aria-controls": `view-${id}`, "aria-selected": "false", tabindex: "-1" }, name);
  const panel = element("section", { role: "tabpanel", id: `view-${id}`, "aria-labelledby": `tab-${id}`, hidden: true });
  views.set(id, { tab, panel, name, update: make(panel, app) });
  return tab;
});
tabs.forEach((tab, at) => {
  tab.addEventListener("keydown", (event) => {
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: tabs.length - 1 }[event.key];
    if (to !== undefined) {
      event.preventDefault();
      const next = tabs[(to + tabs.length) % tabs.length];
      next.focus();
      next.click();
    } else if (event.key === " ") {
      event.preventDefault();
      tab.click();
    }
  });
});
byId("tabs").append(...tabs);
byId("views").append(...[...views.values()].map(({ panel }) => panel));

/** Shows what the address says. What was asked before is not waited for any more. */
const draw = async () => {
  controller?.abort();
  controller = new AbortController();
  const { signal } = controller;
  const main = byId("views");
  main.setAttribute("aria-busy", "true");
  const { update, panel } = views.get(state().view);
  const comeBack = focusIn(panel);
  try {
    await update(state(), signal);
  } catch (error) {
    if (signal.aborted) {
      return;
    }
    app.fail(error);
  }
  if (!signal.aborted) {
    comeBack(panel.querySelector("h2"));
    main.setAttribute("aria-busy", "false");
  }
};
const drawSoon = later(90, draw);

const frame = () => {
  const shown = views.has(state().view) ? state().view : "findings";
  if (shown !== state().view) {
    go({ view: shown }, { replace: true, quiet: true });
  }
  for (const [id, { tab, panel }] of views) {
    tab.setAttribute("aria-selected", String(id === shown));
    tab.tabIndex = id === shown ? 0 : -1;
    tab.href = link({ view: id });
    panel.hidden = id !== shown;
  }
  const { tab } = views.get(shown);
  const list = byId("tabs");
  if (tab.offsetLeft < list.scrollLeft || tab.offsetLeft + tab.offsetWidth > list.scrollLeft + list.clientWidth) {
    list.scrollLeft = tab.offsetLeft - list.clientWidth / 3;
  }
  byId("dump").href = address("heap.hprof", { trace: state().trace, at: state().at });
  title(views.get(shown).name);
};

// ---- The bar ----

const axis = () => (clock.axes.includes(state().axis) ? state().axis : clock.axes[0]);
const line = timeline({ go, state });

const openTrace = async () => {
  const trace = app.trace();
  clock = clockOf(await ask("timeline", { trace: state().trace }), trace);
  showSourcesOf(trace.hasSources ? traces.indexOf(trace) : null);
  byId("program").textContent = trace.program ?? trace.name;
  byId("trace").value = String(traces.indexOf(trace));
  byId("dump").hidden = !trace.hasDeaths;
  byId("axes").replaceChildren(...choice("", "axis", clock.axes.map((one) => [one, AXES[one].name]), axis(), (chosen) => go({ axis: chosen }, { replace: true })).querySelectorAll("label"));
  const warnings = [...(trace.complete ? [] : ["The trace is not complete."]), ...(trace.hasDeaths ? [] : [`What was alive is not known. ${trace.withoutDeaths ?? ""}`]), ...(trace.warnings ?? [])];
  byId("warnings").textContent = warnings.join(" ");
  byId("warnings").hidden = warnings.length === 0;
  line.show(clock, axis());
  // What cannot be told is not asked.
  if (!trace.hasDeaths && state().what !== "made") {
    go({ what: "made" }, { replace: true, quiet: true });
  }
};

const isMoment = (before, now) => before && ["at", "from", "to"].some((name) => before[name] !== now[name]);

onChange(async (now, before) => {
  try {
    if (!before || before.trace !== now.trace) {
      await openTrace();
    } else if (before.axis !== now.axis) {
      line.show(clock, axis());
      all('input[name="axis"]').forEach((input) => (input.checked = input.value === axis()));
    } else {
      line.mark(now);
    }
  } catch (error) {
    byId("timeline").replaceChildren(failure(error.message));
    return;
  }
  frame();
  if (before && before.view !== now.view) {
    await draw();
    window.scrollTo(0, 0);
    // Who came by a tab stays on it.
    if (document.activeElement?.getAttribute("role") !== "tab") {
      focusOn(views.get(state().view).panel.querySelector("h2"));
    }
    say(views.get(state().view).name);
  } else if (isMoment(before, now)) {
    // Somebody may be dragging.
    byId("views").setAttribute("aria-busy", "true");
    drawSoon();
  } else {
    await draw();
  }
});

// ---- Paper, colours, width ----

const again = () => {
  line.again();
  draw();
};
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", again);
let width = window.innerWidth;
window.addEventListener("resize", later(150, () => {
  if (window.innerWidth !== width) {
    width = window.innerWidth;
    again();
  }
}));
const root = document.documentElement;
window.addEventListener("beforeprint", () => {
  root.classList.add("printing");
  line.again();
});
window.addEventListener("afterprint", () => {
  root.classList.remove("printing");
  line.again();
});

// ---- Begin ----

try {
  traces = await ask("traces");
  byId("trace").append(...traces.map((trace, at) => element("option", { value: at }, trace.name)));
  byId("trace-choice").hidden = traces.length < 2;
  byId("trace").addEventListener("change", (event) => go({ trace: event.target.value, at: "end", from: "0", to: "end", path: [], open: [], id: "", of: "", thread: "" }));
  await openTrace();
  frame();
  await draw();
} catch (error) {
  byId("views").append(failure(error.message));
}
