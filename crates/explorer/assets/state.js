// What is seen, in the address: back, forward, reload and links work because nothing of it is kept elsewhere.

const DEFAULTS = {
  view: "findings", trace: "0", axis: "", at: "end", from: "0", to: "end",
  what: "alive", by: "class,site", path: [], open: [], class: "", site: "", context: "", thread: "", sort: "size",
  id: "", of: "", down: "callers", weight: "bytes", shape: "graph", search: "", compare: "class", sql: "",
};

const listeners = [];
let current = null;

const parsed = (hash) => {
  const given = new URLSearchParams(hash.replace(/^#/, ""));
  const state = {};
  for (const [name, value] of Object.entries(DEFAULTS)) {
    state[name] = Array.isArray(value) ? given.getAll(name) : (given.get(name) ?? value);
  }
  return state;
};

const written = (state) => {
  const given = new URLSearchParams();
  for (const [name, value] of Object.entries(DEFAULTS)) {
    if (Array.isArray(value)) {
      state[name].forEach((one) => given.append(name, one));
    } else if (name === "view" || String(state[name]) !== value) {
      given.set(name, state[name]);
    }
  }
  return `#${given}`;
};

export const state = () => (current ??= parsed(location.hash));
/** The address of what is seen, but for some changes. */
export const link = (changes) => written({ ...state(), ...changes });

// Browsers refuse an address that changes hundreds of times in a few seconds, as it would while a handle is dragged.
const PAUSE = 120;
let unwritten = null;
const write = () => {
  clearTimeout(unwritten);
  unwritten = null;
  if (written(current) !== location.hash) {
    history.replaceState(null, "", written(current));
  }
};

const tell = (before) => listeners.forEach((listener) => listener(current, before));

/** Goes there. `replace`: back does not lead to where we are; `quiet`: what is shown is so already. */
export const go = (changes, { replace = false, quiet = false } = {}) => {
  const before = state();
  const hash = link(changes);
  if (replace) {
    current = parsed(hash);
    unwritten ??= setTimeout(write, PAUSE);
  } else {
    write();
    current = parsed(hash);
    if (hash !== location.hash) {
      history.pushState(null, "", hash);
    }
  }
  if (!quiet) {
    tell(before);
  }
};

export const onChange = (listener) => listeners.push(listener);
const fromAddress = () => {
  clearTimeout(unwritten);
  unwritten = null;
  const before = current;
  current = parsed(location.hash);
  if (!before || written(before) !== written(current)) {
    tell(before);
  }
};
window.addEventListener("popstate", fromAddress);
window.addEventListener("hashchange", fromAddress);

/** Which objects are asked about. */
export const selection = ({ trace, what, at, from, to, class: ofClass, site, context, thread }) => ({
  trace, what, ...(what === "alive" ? { at } : { from, to }), class: ofClass, site, context, thread,
});
