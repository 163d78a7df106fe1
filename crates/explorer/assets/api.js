// Questions to et-trace.
import { byId } from "./dom.js";

/** Answers do not change while the program runs: so many are kept. */
const KEPT = 80;
/** Milliseconds after which one sees that something is being worked out. */
const PATIENCE = 150;

const answers = new Map();
let waiting = 0;
let patience;

const begins = () => {
  waiting += 1;
  if (waiting === 1) {
    patience = setTimeout(() => (byId("progress").hidden = false), PATIENCE);
  }
};
const ends = () => {
  waiting -= 1;
  if (waiting === 0) {
    clearTimeout(patience);
    byId("progress").hidden = true;
  }
};

/** The address of a question. */
export const address = (name, params = {}) => {
  const given = new URLSearchParams();
  for (const [key, value] of Object.entries(params)) {
    for (const one of [value].flat()) {
      if (one !== "" && one !== null && one !== undefined) {
        given.append(key, one);
      }
    }
  }
  const text = String(given);
  return `api/${name}${text ? `?${text}` : ""}`;
};

const fetched = async (url, signal) => {
  const response = await fetch(url, { signal }).catch((error) => {
    if (error.name === "AbortError") {
      throw error;
    }
    throw new Error("et-trace does not answer: does et-trace open still run?");
  });
  const body = await response.json().catch((error) => {
    if (error.name === "AbortError") {
      throw error;
    }
    throw new Error(`et-trace gave an answer that cannot be read (status ${response.status}).`);
  });
  if (!response.ok) {
    throw new Error(body.error ?? `et-trace refused to answer (status ${response.status}).`);
  }
  return { body, isReady: response.status !== 202 };
};

const pause = (milliseconds, signal) => new Promise((resolve, reject) => {
  const timer = setTimeout(resolve, milliseconds);
  signal?.addEventListener("abort", () => {
    clearTimeout(timer);
    reject(signal.reason);
  });
});

/** Asks; `pending` is called if the answer is still being worked out. An error's message is a sentence for the reader. */
export const ask = async (name, params, signal, pending = () => {}) => {
  const url = address(name, params);
  const known = answers.get(url);
  if (known) {
    return known;
  }
  begins();
  try {
    for (;;) {
      const { body, isReady } = await fetched(url, signal);
      if (isReady) {
        answers.set(url, body);
        if (answers.size > KEPT) {
          answers.delete(answers.keys().next().value);
        }
        return body;
      }
      pending();
      await pause(1000, signal);
    }
  } finally {
    ends();
  }
};
