// The controls with which groups, objects and flame graphs choose objects.
import { all, choice, choose, element, later } from "./dom.js";
import { go } from "./state.js";

const WHATS = [["alive", "alive at T"], ["made", "made in the range"], ["died", "died in the range"]];
const FILTERS = [["class", "Class", "* stands for any text"], ["site", "Site", "Class.method:line, * stands for any text"], ["context", "Called by", "part of the name of a method on the stack"]];

/** Puts them into `place`; the result makes them say what `state` says. `trace` gives the open trace. */
export const selecting = (place, view, trace) => {
  const apart = (changes) => go({ ...changes, path: [], open: [] });
  const inputs = FILTERS.map(([name, text, hint]) => element("label", { title: hint }, `${text} `,
    element("input", { type: "search", "data-filter": name, placeholder: "all", spellcheck: "false", autocomplete: "off",
      oninput: later(300, (event) => event.target.isConnected && go({ [name]: event.target.value.trim(), path: [], open: [] }, { replace: true })) })));
  const threads = element("select", { onchange: (event) => apart({ thread: event.target.value }) });
  place.append(
    choice("Objects that are", `${view}-what`, WHATS, "alive", (what) => apart({ what })),
    element("fieldset", { class: "filters" }, element("legend", {}, "Only"), ...inputs, element("label", {}, "Thread ", threads)),
  );
  let known = null;
  return (state) => {
    choose(place, `${view}-what`, state.what);
    if (known !== state.trace) {
      known = state.trace;
      threads.replaceChildren(element("option", { value: "" }, "all"), ...trace().threads.map(({ thread, name }) => element("option", { value: thread }, `${name} (${thread})`)));
    }
    threads.value = state.thread;
    for (const input of all("input[data-filter]", place)) {
      // Not while somebody writes in it.
      if (input !== document.activeElement) {
        input.value = state[input.dataset.filter];
      }
    }
    for (const input of all('input[value="alive"], input[value="died"]', place)) {
      input.disabled = !trace().hasDeaths;
    }
  };
};

/** In words: what is chosen. */
export const chosen = ({ what, at, from, to }, clock) => {
  if (what === "alive") {
    return at === "end" ? "alive at the end" : `alive at ${clock.when(at)}`;
  }
  const range = from === "0" && to === "end" ? "in the whole run" : `from ${clock.when(from)} to ${clock.when(to)}`;
  return `${what === "made" ? "made" : "died"} ${range}`;
};
