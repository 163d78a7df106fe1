// Elements, out of text only: names of the program never become markup.

export const byId = (id) => document.getElementById(id);
export const all = (selector, root = document) => [...root.querySelectorAll(selector)];

const fill = (made, attributes, children) => {
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) {
      made.addEventListener(key.slice(2), value);
    } else if (value !== null && value !== undefined && value !== false) {
      made.setAttribute(key, value === true ? "" : value);
    }
  }
  made.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return made;
};
/** Attributes that begin with "on" are listeners; those that are null or false are left out, as null children are. */
export const element = (name, attributes = {}, ...children) => fill(document.createElement(name), attributes, children);
export const drawing = (name, attributes = {}, ...children) =>
  fill(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, children);

export const button = (text, does, more = {}) => element("button", { type: "button", onclick: does, ...more }, text);
/** A name that may be broken where its parts begin. */
export const breakable = (text) => text.split(/(?<=[.$])/).flatMap((part, at) => (at === 0 ? [part] : [element("wbr"), part]));
export const code = (text) => element("code", { title: text }, ...breakable(text));

/** Choices of which one holds. */
export const choice = (legend, name, options, chosen, change) => {
  const inputs = options.map(([value, text]) =>
    element("label", {}, element("input", { type: "radio", name, value, checked: value === chosen, onchange: () => change(value) }), " ", text));
  return element("fieldset", {}, element("legend", {}, legend), ...inputs);
};
export const choose = (place, name, value) => {
  for (const input of all(`input[name="${name}"]`, place)) {
    input.checked = input.value === value;
  }
};

/** Calls the last of several calls that follow each other quickly. */
export const later = (wait, call) => {
  let waiting;
  return (...given) => {
    clearTimeout(waiting);
    waiting = setTimeout(() => call(...given), wait);
  };
};

export const copied = async (text) => {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
};

export const save = (name, type, text) => {
  const url = URL.createObjectURL(new Blob([text], { type }));
  element("a", { href: url, download: name }).click();
  // The browser has begun with it by then.
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
};

export const csv = (rows) => {
  const cell = (value) => {
    const text = value === null || value === undefined ? "" : String(value);
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return rows.map((row) => `${row.map(cell).join(",")}\r\n`).join("");
};

/** Says it to those who hear the page. */
export const say = (text) => {
  byId("status").textContent = text;
};

/** What somebody is at, so as to come back to the same when it is drawn again. */
export const focusIn = (place) => {
  const named = (one) => `${one.tagName} ${one.getAttribute("aria-label") ?? one.textContent}`;
  const active = document.activeElement;
  if (!place.contains(active) || active === place) {
    return () => {};
  }
  const name = named(active);
  return (otherwise) => {
    if (!place.contains(document.activeElement)) {
      const same = all("a, button, input, [tabindex]", place).find((one) => named(one) === name && one.offsetParent);
      (same ?? otherwise)?.focus({ preventScroll: true });
    }
  };
};
