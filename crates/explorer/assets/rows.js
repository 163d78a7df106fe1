// A table whose rows are made only where they are seen.
import { element } from "./dom.js";

const ROW = 30;

/**
 * `columns`: each has its `heading`, its width `wide` in rem, and `cell`, which makes what is in a row; the first is the row's own heading.
 * `row` gives what a row is about; undefined: it is on its way, and `draw` is called when it is there.
 */
export const virtualRows = ({ label, caption, count, columns, row }) => {
  columns.forEach(({ heading, wide }) => (heading.style.width = `${wide}rem`));
  const body = element("tbody");
  const place = element("div", { class: "scroll rows", tabindex: "0", role: "region", "aria-label": label },
    element("table", { class: "fixed", "aria-rowcount": count + 1 }, element("caption", { class: "unseen" }, caption),
      element("thead", {}, element("tr", { "aria-rowindex": 1 }, ...columns.map(({ heading }) => heading))), body));
  place.querySelector("table").style.minWidth = `${columns.reduce((sum, { wide }) => sum + wide, 0)}rem`;

  const made = (index) => {
    const one = row(index);
    if (one === undefined) {
      return element("tr", { "aria-rowindex": index + 2 }, element("td", { colspan: columns.length }, "…"));
    }
    return element("tr", { "aria-rowindex": index + 2, "data-index": index }, ...columns.map(({ cell, number }, at) =>
      element(at === 0 ? "th" : "td", { scope: at === 0 ? "row" : null, class: number ? "number" : null }, cell(one))));
  };
  /** Keeps the place of rows that are not there. */
  const space = (height) => {
    const cell = element("td", { colspan: columns.length });
    cell.style.height = `${height}px`;
    return element("tr", { class: "space", "aria-hidden": "true" }, cell);
  };
  const draw = () => {
    const items = rows.getVirtualItems();
    const focused = document.activeElement?.closest("tr")?.dataset.index;
    const isInside = body.contains(document.activeElement);
    const top = items[0]?.start ?? 0;
    const bottom = rows.getTotalSize() - (items.at(-1)?.end ?? 0);
    body.replaceChildren(...(top > 0 ? [space(top)] : []), ...items.map(({ index }) => made(index)), ...(bottom > 0 ? [space(bottom)] : []));
    if (isInside) {
      (body.querySelector(`tr[data-index="${focused}"] a`) ?? place).focus({ preventScroll: true });
    }
  };
  const { Virtualizer, elementScroll, observeElementOffset, observeElementRect } = libraries;
  const rows = new Virtualizer({
    count, estimateSize: () => ROW, overscan: 12, getScrollElement: () => place,
    scrollToFn: elementScroll, observeElementOffset, observeElementRect, onChange: () => draw(),
    initialRect: { width: 1000, height: 600 },
  });
  place.addEventListener("keydown", (event) => {
    const at = Number(event.target.closest("tr")?.dataset.index ?? -1);
    const to = { ArrowDown: at + 1, ArrowUp: at - 1 }[event.key];
    if (to === undefined || to < 0 || to >= count || event.target.closest("thead")) {
      return;
    }
    event.preventDefault();
    rows.scrollToIndex(to, { align: "auto" });
    requestAnimationFrame(() => body.querySelector(`tr[data-index="${to}"] a`)?.focus({ preventScroll: true }));
  });
  return {
    place,
    draw,
    /** Once it is on the page; gives what is to be called when it leaves it. */
    begin: () => {
      // What adapters of the library for frameworks call as well.
      const leave = rows._didMount();
      rows._willUpdate();
      draw();
      return leave;
    },
  };
};
