// A table that is opened level by level.
import { button, element } from "./dom.js";
import { failure } from "./parts.js";

/** Lines that are asked for at first, and each time that more are wanted ten times as many. */
const FIRST = 100;
const MOST = 10_000;

/**
 * `options`: `caption`, `first` (title of the first column), `columns` (`{ title, number, hint, cell(line, path) }`), `name(line, path)` (content
 * of the first column), `nameText(line)`, `key(line)`, `isLeaf(line, path)`, `children(path, top, signal)` (`{ lines, more }`),
 * `open` (paths that are open, as JSON), `onOpen(open)`, `onMore(more)` (a note about what is left out).
 * The result has the element and the rows that are shown.
 */
export const treeTable = async (options, signal) => {
  const { caption, first, columns, name, nameText, key, isLeaf, children, onOpen } = options;
  const open = new Set(options.open);
  const body = element("tbody");
  const shown = [];

  const toggleOf = (row) => row?.querySelector("button.toggle");
  const entry = (line, path) => {
    const depth = path.length - 1;
    const id = JSON.stringify(path);
    const made = { line, path, id, row: null, below: [] };
    const leaf = isLeaf(line, path);
    const toggle = leaf
      ? element("span", { class: "toggle", "aria-hidden": "true" })
      : button("", () => (open.has(id) ? close(made) : expand(made, signal)), { class: "toggle", "aria-expanded": "false", "aria-label": `Open ${nameText(line)}` });
    const heading = element("th", { scope: "row" }, element("span", { class: "tree-name" }, toggle, name(line, path)));
    heading.firstChild.style.paddingLeft = `${depth * 1.1}rem`;
    made.row = element("tr", { "data-depth": depth }, heading, ...columns.map(({ cell, number }) => element("td", { class: number ? "number" : null }, cell(line, path) ?? "")));
    return made;
  };

  const placed = (entries) => entries.flatMap((one) => [one.row, ...placed(one.below), ...(one.more ? [one.more] : [])]);
  const draw = () => {
    const active = document.activeElement;
    shown.splice(0, shown.length);
    const collect = (entries) => entries.forEach((one) => {
      shown.push(one);
      collect(one.below);
    });
    collect(root.below);
    body.replaceChildren(...placed(root.below), ...(root.more ? [root.more] : []));
    if (active && body.contains(active)) {
      active.focus({ preventScroll: true });
    }
  };

  /** Fills what is below. */
  const load = async (above, top, signal) => {
    const { lines, more } = await children(above.path, top, signal);
    above.below = lines.map((line) => entry(line, [...above.path, key(line)]));
    above.more = null;
    if (more > 0) {
      const cell = element("th", { scope: "row", colspan: columns.length + 1 }, `${more.toLocaleString("en")} more `,
        top < MOST ? button("show more", async () => {
          await load(above, top * 10, signal);
          draw();
        }) : null);
      cell.style.paddingLeft = `${above.path.length * 1.1 + 1.6}rem`;
      above.more = element("tr", { class: "more" }, cell);
    }
    await Promise.all(above.below.filter((one) => open.has(one.id) && !isLeaf(one.line, one.path)).map((one) => fill(one, signal)));
  };
  const fill = async (one, signal) => {
    await load(one, FIRST, signal);
    toggleOf(one.row).setAttribute("aria-expanded", "true");
  };
  const expand = async (one, signal) => {
    open.add(one.id);
    try {
      await fill(one, signal);
    } catch (error) {
      if (signal?.aborted) {
        return;
      }
      open.delete(one.id);
      one.more = element("tr", {}, element("td", { colspan: columns.length + 1 }, failure(error.message)));
    }
    draw();
    onOpen([...open]);
  };
  const close = (one) => {
    open.delete(one.id);
    one.below = [];
    one.more = null;
    toggleOf(one.row).setAttribute("aria-expanded", "false");
    draw();
    onOpen([...open]);
  };

  const root = { path: [], below: [], more: null };
  await load(root, FIRST, signal);
  draw();

  body.addEventListener("keydown", (event) => {
    const row = event.target.closest("tr");
    const at = shown.findIndex((one) => one.row === row);
    const one = shown[at];
    if (!one || event.altKey || event.ctrlKey || event.metaKey) {
      return;
    }
    const focus = (other) => (toggleOf(other?.row) ?? other?.row.querySelector("a, button"))?.focus();
    const toggle = toggleOf(row);
    const does = {
      ArrowDown: () => focus(shown[at + 1]),
      ArrowUp: () => focus(shown[at - 1]),
      ArrowRight: () => toggle?.tagName === "BUTTON" && !open.has(one.id) ? toggle.click() : focus(shown[at + 1]),
      ArrowLeft: () => toggle?.tagName === "BUTTON" && open.has(one.id)
        ? toggle.click()
        : focus(shown.slice(0, at).findLast((other) => other.path.length < one.path.length)),
    }[event.key];
    if (does) {
      event.preventDefault();
      does();
    }
  });

  const head = [{ title: first }, ...columns].map(({ title, number, hint }) => element("th", { scope: "col", class: number ? "number" : null, title: hint }, title));
  const table = element("table", { class: "tree" }, element("caption", { class: "unseen" }, caption), element("thead", {}, element("tr", {}, ...head)), body);
  return { place: element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption }, table), rows: () => shown };
};
