// What all pages write alike: amounts, and the names of boxes in flame graphs.
"use strict";
const words = (() => {
  // ---- Units, as et-trace writes them ----

  const bytes = (count) => {
    const units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let value = count, unit = 0;
    while (Math.abs(value) >= 1023.95 && unit + 1 < units.length) {
      value /= 1024;
      unit += 1;
    }
    return unit === 0 ? `${Math.round(value)} B` : `${value.toFixed(1)} ${units[unit]}`;
  };
  /** Steps of an axis of bytes: what reads as round in KiB and MiB. */
  const byteSteps = [...Array(44).keys()].map((power) => 2 ** power);
  const number = (count) => Math.round(count).toLocaleString("en");
  const short = (count) => {
    const units = ["", " k", " M", " G", " T"];
    let value = count, unit = 0;
    while (Math.abs(value) >= 1000 && unit + 1 < units.length) {
      value /= 1000;
      unit += 1;
    }
    return `${+value.toPrecision(3)}${units[unit]}`;
  };
  const seconds = (value) => (value < 1 ? `${+(value * 1000).toPrecision(3)} ms` : `${+value.toPrecision(4)} s`);
  const percent = (part, whole) => (whole > 0 ? `${((part * 100) / whole).toFixed(1)} %` : "");

  // ---- Flame graphs ----

  const kinds = {
    root: "", program: "method of the program", library: "method of a library", jdk: "method of the JDK",
    class: "class", site: "class and site",
  };

  /** Without packages, which would leave no room for anything else in a box; the whole name is in its tooltip. */
  const label = ({ name, kind }) => {
    if (kind === "root") {
      return name;
    }
    // A class, and with a site its method: `shop.Main$$Lambda.0x1f` is one word.
    const last = (text, words) => text.replace(/\.(0x[0-9a-f]+)/g, "/$1").split(".").slice(-words).join(".");
    const [first, ...rest] = name.split("  ");
    const isMethod = kind !== "class" && kind !== "site";
    return [last(first, isMethod ? 2 : 1), ...rest.map((site) => last(site, 2))].join("  ");
  };

  return { bytes, byteSteps, number, short, seconds, percent, kinds, label };
})();
