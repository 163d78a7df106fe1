// What all pages share: units, tabs, tables. Without it a page can still be read.
//
// Names out of the program only ever become text (textContent, attributes), never markup; styles are only set one by one, which the
// page's content security policy allows.
"use strict";
const page = (() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const byId = (id) => document.getElementById(id);
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];

  const { bytes, byteSteps, number, short, seconds, percent } = words;
  const amount = { bytes, objects: (count) => `${number(count)} object${count === 1 ? "" : "s"}` };

  const element = (name, attributes = {}, ...children) => {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) {
      made.setAttribute(key, value);
    }
    made.append(...children);
    return made;
  };
  // What a terminal or a shell takes for something else than a character of a name, or nobody sees; as et-trace has it.
  const special = /[\p{Cc}\p{Zl}\p{Zp}\p{Cs}\u00ad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u{1d173}-\u{1d17a}\u{e0000}-\u{e0fff}\u{10f800}-\u{10ffff}]|(?! )\s/gu;
  const inBytes = (text) => [...new TextEncoder().encode(text)].map((byte) => `\\x${byte.toString(16).padStart(2, "0")}`).join("");
  /** As a shell takes it: a line end in a name would start the command before it has been read. */
  const quoted = (text) => {
    if (/^[\w\-./+,:@%=]+$/.test(text)) {
      return text;
    }
    return text.search(special) < 0
      ? `'${text.replaceAll("'", "'\\''")}'`
      : `$'${text.replace(/[\\']/g, "\\$&").replace(special, inBytes)}'`;
  };
  const checked = (name) => document.querySelector(`input[name="${name}"]:checked`)?.value;
  const onChange = (name, change) =>
    all(`input[name="${name}"]`).forEach((input) => input.addEventListener("change", change));

  // ---- Pages ----

  const tabs = all('[role="tab"]');
  const panels = all('[role="tabpanel"]');
  // What draws a page when it is first seen: a hidden page has no width.
  const drawn = new Map();
  const drawers = {};

  const draw = (id) => {
    if (!drawn.has(id)) {
      drawn.set(id, true);
      drawers[id]?.();
    }
  };

  const show = (id, focus) => {
    if (!panels.some((panel) => panel.id === id)) {
      id = panels[0].id;
    }
    tabs.forEach((tab) => {
      const isShown = tab.getAttribute("aria-controls") === id;
      tab.setAttribute("aria-selected", String(isShown));
      tab.tabIndex = isShown ? 0 : -1;
      if (isShown && focus) {
        tab.focus();
      }
    });
    panels.forEach((panel) => panel.classList.toggle("shown", panel.id === id));
    window.scrollTo(0, 0);
    draw(id);
  };

  document.documentElement.classList.add("scripted");
  tabs.forEach((tab, index) => {
    tab.addEventListener("click", (event) => {
      event.preventDefault();
      history.replaceState(null, "", tab.hash);
      show(tab.hash.slice(1), false);
    });
    tab.addEventListener("keydown", (event) => {
      const to = { ArrowRight: index + 1, ArrowLeft: index - 1, Home: 0, End: tabs.length - 1 }[event.key];
      if (to !== undefined) {
        event.preventDefault();
        const next = tabs[(to + tabs.length) % tabs.length];
        history.replaceState(null, "", next.hash);
        show(next.hash.slice(1), true);
      } else if (event.key === " ") {
        event.preventDefault();
        tab.click();
      }
    });
  });
  window.addEventListener("hashchange", () => show(location.hash.slice(1), false));

  // ---- Paper ----

  // Of A4 and of Letter, between usual margins.
  const PAPER = 700;
  const root = document.documentElement;
  const isPrinting = () => root.classList.contains("printing");
  /** How wide a drawing in that place may be. */
  const widthOf = (place) => (isPrinting() ? PAPER : Math.max(place.clientWidth || 900, 300));
  // What was opened for paper only.
  let unfolded = [];
  window.addEventListener("beforeprint", () => {
    root.classList.add("printing");
    // Paper cannot be opened.
    unfolded = [...unfolded, ...all("details.unfold:not([open])")];
    unfolded.forEach((details) => (details.open = true));
    // What is not seen is not printed, and has no width to be drawn in.
    panels.filter((panel) => panel.offsetParent).forEach((panel) => {
      drawn.set(panel.id, true);
      drawers[panel.id]?.();
    });
  });
  window.addEventListener("afterprint", () => {
    root.classList.remove("printing", "whole");
    unfolded.forEach((details) => (details.open = false));
    unfolded = [];
    again();
  });
  const printAll = byId("print-all");
  if (printAll) {
    printAll.hidden = false;
    printAll.addEventListener("click", () => {
      root.classList.add("whole");
      window.print();
    });
  }

  // ---- Commands ----

  const copied = async (text) => {
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch {
      // Pages out of files have no clipboard in some browsers.
      const area = element("textarea", { "aria-hidden": "true" });
      area.value = text;
      document.body.append(area);
      area.select();
      const done = document.execCommand("copy");
      area.remove();
      return done;
    }
  };
  /** Gives each command in there a button. */
  const withButtons = (place) => {
    for (const command of all(".command", place)) {
      const text = command.querySelector("code");
      const what = command.querySelector("summary")?.getAttribute("aria-label")?.replace("Show", "Copy") ?? "Copy this command";
      const button = element("button", { type: "button", class: "copy", "aria-label": what }, "Copy");
      button.addEventListener("click", async () => {
        button.textContent = (await copied(text.textContent)) ? "Copied" : "Not copied";
        button.focus();
        setTimeout(() => (button.textContent = "Copy"), 2000);
      });
      if (command.tagName === "DETAILS") {
        command.before(button);
      } else {
        command.append(" ", button);
      }
    }
    return place;
  };
  withButtons(document);

  // ---- Tables ----

  /** What a cell says. Of source it is the line: those around it are of other sites. */
  const textOf = (cell) => [...cell.childNodes].map((node) => (node.classList?.contains("source") ? node.querySelector("summary") : node).textContent).join(" ");

  for (const table of all("table[data-table]")) {
    const body = table.tBodies[0];
    all("thead th", table).forEach((heading, column) => {
      if (heading.textContent === "Command" || heading.textContent === "Course") {
        return;
      }
      const isNumber = heading.classList.contains("number");
      const button = element("button", { type: "button", class: "sort" }, ...heading.childNodes);
      heading.replaceChildren(button);
      button.addEventListener("click", () => {
        const isDown = heading.getAttribute("aria-sort") === "descending" || (!isNumber && heading.getAttribute("aria-sort") !== "ascending");
        all("thead th", table).forEach((other) => other.removeAttribute("aria-sort"));
        heading.setAttribute("aria-sort", isDown ? "ascending" : "descending");
        const value = (row) => (isNumber ? Number(row.cells[column].dataset.value ?? -1) : textOf(row.cells[column]));
        const order = (a, b) => (isNumber ? value(a) - value(b) : value(a).localeCompare(value(b)));
        const rows = [...body.rows].sort((a, b) => (isDown ? order(a, b) : order(b, a)));
        body.append(...rows);
      });
    });
  }
  for (const input of all("input[data-filter]")) {
    input.addEventListener("input", () => {
      const term = input.value.toLowerCase();
      all(`table[data-table="${input.dataset.filter}"] tbody tr`).forEach((row) => {
        const cells = [...row.cells].slice(0, -1);
        row.hidden = term !== "" && !cells.some((cell) => textOf(cell).toLowerCase().includes(term));
      });
    });
  }

  // ---- All of it again when the colours or the width change ----

  const again = () => {
    for (const id of drawn.keys()) {
      if (byId(id).classList.contains("shown")) {
        drawers[id]?.();
      } else {
        drawn.delete(id);
      }
    }
  };
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", again);
  let width = window.innerWidth;
  let waiting;
  window.addEventListener("resize", () => {
    if (window.innerWidth !== width) {
      width = window.innerWidth;
      clearTimeout(waiting);
      waiting = setTimeout(again, 150);
    }
  });

  return { data, byId, all, bytes, byteSteps, number, short, seconds, percent, amount, element, quoted, checked, onChange, drawn, drawers, show, widthOf, isPrinting, withButtons };
})();
