// Amounts, as et-trace writes them.

export const bytes = (count) => {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let value = count, unit = 0;
  while (Math.abs(value) >= 1023.95 && unit + 1 < units.length) {
    value /= 1024;
    unit += 1;
  }
  return unit === 0 ? `${Math.round(value)} B` : `${value.toFixed(1)} ${units[unit]}`;
};
/** Steps of an axis of bytes: what reads as round in KiB and MiB. */
export const byteSteps = [...Array(44).keys()].map((power) => 2 ** power);
export const number = (count) => Math.round(count).toLocaleString("en");
export const short = (count) => {
  const units = ["", " k", " M", " G", " T"];
  let value = count, unit = 0;
  while (Math.abs(value) >= 1000 && unit + 1 < units.length) {
    value /= 1000;
    unit += 1;
  }
  return `${+value.toPrecision(3)}${units[unit]}`;
};
export const seconds = (value) =>
  value < 1 ? `${+(value * 1000).toPrecision(3)} ms` : `${+value.toPrecision(4)} s`;
export const percent = (part, whole) => (whole > 0 ? `${((part * 100) / whole).toFixed(1)} %` : "");
export const objects = (count) => `${number(count)} object${count === 1 ? "" : "s"}`;
/** With its sign, the same for those who cannot see colours. */
export const signed = (count, write) => (count > 0 ? `+${write(count)}` : count < 0 ? `−${write(-count)}` : write(0));

/** A class without its package, which would leave no room for anything else; the whole name is in a tooltip. */
export const brief = (name) => name.replace(/(?:[\w$]+\.)+(?=[\w$\[\]<>/]+)/g, "");
/** The same of a site or a method, of which the class stays. */
export const briefSite = (name) => name.replace(/(?:[\w$]+\.)+([\w$]+\.[\w$<>]+)/g, "$1");
