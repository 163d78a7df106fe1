// Questions in SQL, on the tables of the trace.
import { ask } from "./api.js";
import { button, code, element } from "./dom.js";
import { foot, frame, nothing } from "./parts.js";
import { virtualRows } from "./rows.js";
import { go, link } from "./state.js";
import { number } from "./units.js";

/** A column of ids: numbers with a sign, of 64 bits. */
const IDS = "object";
const idOf = (text) => BigInt.asUintN(64, BigInt(text)).toString(16);
const isNumber = (text) => text === "" || /^-?\d+(\.\d+)?(e[+-]?\d+)?$/i.test(text);

/** Without tables: how to have them. */
const withoutTables = (answer, below, trace) => {
  const folder = `${trace.path.replace(/\.ettrace$/, "")}.tables`;
  answer.replaceChildren(
    element("p", {}, "SQL is asked on tables. Write them once, and open the trace with them; DuckDB answers (its command, or its Python module)."),
    element("pre", { tabindex: "0", role: "group", "aria-label": "The commands" }, element("code", {}, `et-trace tables ${trace.path} -o ${folder}\net-trace open ${trace.path} --tables ${folder}`)));
  below.replaceChildren();
};

export const sql = {
  id: "sql",
  name: "SQL",
  make: (panel, app) => {
    const { controls, answer, foot: below } = frame(panel, "SQL");
    const text = element("textarea", { id: "sql-text", rows: 6, spellcheck: "false", autocapitalize: "off", "aria-label": "Statement in SQL", "aria-keyshortcuts": "Control+Enter", placeholder: "select class_name, count(*) …" });
    const queries = element("select", { "aria-label": "A query that comes with et-trace" });
    const question = element("p", { class: "note" });
    const run = () => go({ sql: text.value.trim() });
    text.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
        event.preventDefault();
        run();
      }
    });
    queries.addEventListener("change", () => {
      const query = app.trace().sql?.queries.find(({ name }) => name === queries.value);
      if (query) {
        text.value = query.text.trim();
        question.textContent = query.question;
      }
    });
    let shown = null;
    let leave = null;
    return async (state, signal) => {
      const trace = app.trace();
      leave?.();
      leave = null;
      if (!trace.sql) {
        controls.replaceChildren();
        withoutTables(answer, below, trace);
        return;
      }
      if (shown !== trace) {
        shown = trace;
        queries.replaceChildren(element("option", { value: "" }, "choose a query …"), ...trace.sql.queries.map(({ name, question }) => element("option", { value: name, title: question }, name)));
        controls.replaceChildren(element("div", { class: "sql" }, element("label", {}, "Query ", queries), question, text,
          element("div", {}, button("Run", run, { class: "run" }), element("span", { class: "note" }, " Ctrl+Enter · the tables and their columns are in docs/tables.md"))));
      }
      if (state.sql && text.value.trim() !== state.sql) {
        text.value = state.sql;
      }
      if (!state.sql) {
        answer.replaceChildren(nothing(`Choose a query or write one: it is run on ${trace.sql.folder}.`));
        below.replaceChildren();
        return;
      }
      const found = await ask("sql", { trace: state.trace, q: state.sql }, signal);
      if (found.columns.length === 0) {
        answer.replaceChildren(nothing("There are no rows."));
        foot(below, { command: found.command });
        return;
      }
      const columns = found.columns.map((name, at) => {
        const sample = found.rows.slice(0, 200);
        const number = sample.length > 0 && sample.every((row) => isNumber(row[at]));
        const longest = Math.max(name.length, ...sample.map((row) => row[at].length));
        const isId = name === IDS && number && trace.sql.isOfOneRun;
        return {
          number,
          wide: Math.min(34, Math.max(5, longest * 0.62 + 1.5)),
          heading: element("th", { scope: "col", class: number ? "number" : null }, name),
          cell: (row) => isId && row[at] ? element("a", { href: link({ view: "object", id: idOf(row[at]) }) }, code(idOf(row[at]))) : element("span", { title: row[at] }, row[at]),
        };
      });
      const caption = `${found.isCut ? "The first " : ""}${number(found.rows.length)} ${found.rows.length === 1 ? "row" : "rows"}`;
      const rows = virtualRows({ label: "Rows of the answer", caption, count: found.rows.length, columns, row: (index) => found.rows[index] });
      answer.replaceChildren(element("p", { class: "summary" }, `${caption}${found.isCut ? ": there are more; ask for fewer, or run the command below" : ""}.`), rows.place, element("p", { class: "note" }, `Answered by ${found.engine}.`));
      leave = rows.begin();
      foot(below, { command: found.command, table: () => ({ name: "answer", columns: found.columns, rows: found.rows }) });
    };
  },
};
