// Amounts, as et-trace writes them. Most come from words.js, which reports have, too.

export const { bytes, byteSteps, number, short, seconds, percent } = words;
export const objects = (count) => `${number(count)} object${count === 1 ? "" : "s"}`;
/** With its sign, the same for those who cannot see colours. */
export const signed = (count, write) => (count > 0 ? `+${write(count)}` : count < 0 ? `−${write(-count)}` : write(0));

/** A class without its package, which would leave no room for anything else; the whole name is in a tooltip. */
export const brief = (name) => name.replace(/(?:[\w$]+\.)+(?=[\w$\[\]<>/]+)/g, "");
/** The same of a site or a method, of which the class stays. */
export const briefSite = (name) => name.replace(/(?:[\w$]+\.)+([\w$]+\.[\w$<>]+)/g, "$1");
