// What views are made of: their frame, curves, bars, the line below with the command and what can be saved.
import { byId, button, copied, csv, drawing, element, save } from "./dom.js";

/** The places of a view. */
export const frame = (panel, title) => {
  const places = {
    heading: element("h2", { tabindex: "-1" }, title),
    controls: element("div", { class: "controls" }),
    answer: element("div", { class: "answer" }),
    foot: element("div", { class: "foot" }),
  };
  panel.append(places.heading, places.controls, places.answer, places.foot);
  return places;
};

/** A command with a button that copies it. */
const commandLine = (command) => {
  const copy = button("Copy", async () => {
    copy.textContent = (await copied(command)) ? "Copied" : "Not copied";
    setTimeout(() => (copy.textContent = "Copy"), 2000);
  }, { class: "copy", "aria-label": "Copy the command" });
  return element("span", { class: "command" }, element("code", {}, command), " ", copy);
};

/**
 * What is below an answer. `table` gives what CSV and JSON contain: `{ name, columns, rows }`; `more` are other things to save, each a name
 * and what does it.
 */
export const foot = (place, { command, table, more = [] }) => {
  const saves = [];
  if (table) {
    saves.push(button("CSV", () => {
      const { name, columns, rows } = table();
      save(`${name}.csv`, "text/csv", csv([columns, ...rows]));
    }), button("JSON", () => {
      const { name, columns, rows } = table();
      const objects = rows.map((row) => Object.fromEntries(columns.map((column, at) => [column, row[at]])));
      save(`${name}.json`, "application/json", `${JSON.stringify(objects, null, 1)}\n`);
    }));
  }
  saves.push(...more.map(([name, does]) => button(name, does)));
  place.replaceChildren(
    command ? commandLine(command) : element("span", { class: "command" }, "No single command prints this."),
    element("span", { class: "saves", role: "group", "aria-label": "Save what is shown" }, ...(saves.length ? ["Save: "] : []), ...saves),
  );
};

/** A small curve. `at` and `to` are parts of the whole, between 0 and 1: a moment or the edges of a range. */
export const curve = (values, label, marks = []) => {
  const width = 96, height = 20;
  const most = Math.max(1, ...values);
  const points = values.map((value, at) => `${((at * width) / Math.max(1, values.length - 1)).toFixed(1)},${(height - 1 - (value / most) * (height - 2)).toFixed(1)}`);
  return drawing("svg", { class: "curve", width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label },
    drawing("polygon", { points: `0,${height} ${points.join(" ")} ${width},${height}`, class: "below" }),
    drawing("polyline", { points: points.join(" "), class: "line" }),
    ...marks.map((mark) => drawing("line", { x1: mark * width, x2: mark * width, y1: 0, y2: height, class: "mark" })));
};

/** A bar behind a number: how large it is beside the largest. */
export const bar = (part, whole, kind = "") => {
  const made = element("span", { class: `bar-of ${kind}`, "aria-hidden": "true" });
  made.style.width = `${whole > 0 ? Math.max(0, Math.min(100, (part * 100) / whole)) : 0}%`;
  return made;
};
/** A cell with a number and its bar. */
export const amount = (text, part, whole) => element("span", { class: "amount" }, bar(part, whole), element("span", {}, text));

export const nothing = (text) => element("p", { class: "nothing" }, text);
export const failure = (text) => element("p", { class: "failure", role: "alert" }, text);

/** A table that can be scrolled, also by keyboard. */
export const table = (caption, columns, rows) => {
  const head = columns.map(({ title, number, hint }) => element("th", { scope: "col", class: number ? "number" : null, title: hint }, title));
  return element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    element("table", {}, element("caption", { class: "unseen" }, caption), element("thead", {}, element("tr", {}, ...head)), element("tbody", {}, ...rows)));
};

/** Lets one who does not see the page know where it went. */
export const focusOn = (place) => place?.focus({ preventScroll: true });
export const title = (text) => {
  document.title = `${text} · Elephant Tracks`;
  byId("program").title = text;
};
