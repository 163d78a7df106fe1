// Opens a report in Chromium, as a reader would, and says what is wrong with it.
//
//   node browse.mjs CHROMIUM REPORT SCREENSHOTS [--without-deaths | --diff | --source]
//
// Visits each page, clicks, types and uses the keyboard; then again in the dark, on a small screen and on paper. With --source only
// lines of source are looked at, and the small screen and paper: the rest of that page is as in a report without source. Screenshots
// go to a folder. Prints one line for each finding, and fails if there is one.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

const [executablePath, report, screenshots, ...options] = process.argv.slice(2);
const withoutDeaths = options.includes("--without-deaths");
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
// The report of examples/leaky-cache, with its source.
const hasSource = options.includes("--source");
// `et-trace diff` writes a page as well.
const isDiff = options.includes("--diff");
const PAGES = isDiff
  ? ["overview", "classes", "sites", "contexts"]
  : ["overview", "allocation", "alive", "lifetimes", "holders", "suspects", "threads"];
const found = [];
const check = (holds, what) => {
  if (!holds) {
    found.push(what);
  }
};

const profile = mkdtempSync(join(tmpdir(), "et-report-"));
const browser = await chromium.launchPersistentContext(profile, {
  executablePath,
  headless: true,
  viewport: { width: 1400, height: 950 },
  colorScheme: "light",
  reducedMotion: "reduce",
  args: [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
  ],
});

try {
  const page = await browser.newPage();
  page.setDefaultTimeout(60_000);
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) {
      found.push(`console: ${message.text()}`);
    }
  });
  page.on("pageerror", (error) => found.push(`script: ${error.message}`));
  page.on("dialog", (dialog) => {
    found.push(`a name out of the program ran as a script: ${dialog.message()}`);
    dialog.dismiss();
  });
  page.on("request", (request) => check(request.url().startsWith("file:") || request.url().startsWith("data:"), `asks for ${request.url()}`));
  await page.goto(pathToFileURL(report).href);

  const text = (selector) => page.locator(selector).first().innerText();
  const visit = (id) => page.locator(`#tab-${id}`).click();
  const shot = (name) => page.screenshot({ path: join(screenshots, `${name}.png`) });
  /** What axe-core finds on what is visible. Run by itself: the page's own policy lets no other script in. */
  const accessible = async (where, rules) => {
    // All of the document once; later only what is seen.
    const context = where === "overview" ? "document" : `{ include: [["body > header"], [".shown"]] }`;
    const session = await browser.newCDPSession(page);
    await session.send("Runtime.evaluate", { expression: axe });
    const { result, exceptionDetails } = await session.send("Runtime.evaluate", {
      expression: `axe.run(${context}, ${rules ? JSON.stringify({ runOnly: rules }) : "{}"}).then((all) => JSON.stringify(all.violations.map((one) =>
        one.id + ": " + one.help + " (" + one.nodes.slice(0, 3).map((node) => node.target.join(" ") + " " + node.html.slice(0, 160) + " " + (node.any[0]?.message ?? "")).join("; ") + ")")))`,
      awaitPromise: true,
      returnByValue: true,
    });
    check(!exceptionDetails, `axe-core failed on ${where}: ${exceptionDetails?.text}`);
    JSON.parse(result.value ?? "[]").forEach((violation) => found.push(`${where}: ${violation}`));
    await session.detach();
  };

  /** All pages, by their tabs and by keyboard. */
  const tabs = async () => {
    // Each page by its tab: it is the only one that is seen, and it says something.
    for (const id of PAGES) {
      await visit(id);
      const seen = await page.locator('[role="tabpanel"]:visible').evaluateAll((panels) => panels.map((panel) => panel.id));
      check(seen.join() === id, `tab ${id} shows ${seen.join()}`);
      check((await text(`#${id}`)).length > 100, `page ${id} says nothing`);
      await page.waitForTimeout(60);
      await shot(id);
      await accessible(id);
    }

    // The tabs by keyboard.
    await page.locator("#tab-overview").click();
    await page.keyboard.press("ArrowRight");
    check((await page.locator('[aria-selected="true"]').getAttribute("id")) === `tab-${PAGES[1]}`, "the arrow keys do not go to the next tab");
    await page.keyboard.press("Home");
    check((await page.locator('[role="tabpanel"]:visible').getAttribute("id")) === "overview", "Home does not go to the first tab");
  };

  /** What stands out, top entries, and what is closed at first. */
  const glances = async () => {
    await visit("overview");
    const standouts = page.locator("#overview > .standouts > .finding");
    check((await standouts.count()) <= 5, `${await standouts.count()} findings are seen at once`);
    for (const finding of await standouts.all()) {
      check((await finding.locator("svg").first().boundingBox()).width > 20, "a finding has no bar or curve");
    }
    if (await standouts.count()) {
      const says = standouts.first().locator("details p").first();
      check(!(await says.isVisible()), "the sentences of a finding are seen before anybody asks");
      await standouts.first().locator("summary").first().focus();
      await page.keyboard.press("Enter");
      check(await says.isVisible(), "Enter does not open the sentences of a finding");
      await shot("overview-open");
      await accessible("an open finding");
    }
    const bars = page.locator(".top .bars a");
    check((await bars.count()) >= 5, `${await bars.count()} bars of top entries`);
    // The longest bar of a list is not shorter than that of its last entry.
    const widths = await page.locator(".top").first().locator(".bar .part").evaluateAll((parts) => parts.map((part) => Number(part.getAttribute("width"))));
    check(widths.length > 0 && widths.every((width, at) => width <= 100 && width <= widths[0] && (at === 0 || width >= 0)), `bars of ${widths}`);
    await bars.first().click();
    check((await page.locator('[role="tabpanel"]:visible').getAttribute("id")) !== "overview", "a bar does not lead to its page");
    await visit("overview");
    await page.locator("#rates summary").click();
    await page.waitForTimeout(100);
    check((await page.locator("#chart-rate canvas").count()) === 1, "the graph of allocation is not drawn when it is opened");
    for (const summary of ["The run", "What this report does not show"]) {
      const details = page.locator("#overview > details", { hasText: summary });
      const inside = details.locator("dl, ul").first();
      check(!(await inside.isVisible()), `${summary} is open`);
      await details.locator("summary").click();
      check(await inside.isVisible(), `${summary} does not open`);
    }
    await accessible("all of the overview");
  };

  /** The trees of what holds the heap, by keyboard. */
  const trees = async () => {
    await visit("holders");
    const tree = page.locator(".tree").last();
    const closed = tree.locator("details:not([open])").first();
    check((await closed.count()) === 1, "nothing of the tree can be opened");
    const below = closed.locator("ul > li").first();
    check(!(await below.isVisible()), "rows of a closed object are seen");
    await closed.locator("summary").first().focus();
    const rows = () => tree.locator("li:visible").count();
    const before = await rows();
    await page.keyboard.press("Enter");
    check((await rows()) > before, "Enter does not open a row of the tree");
    // The rows of a level are all of what they are part of.
    const shares = await tree.locator("> ul > li").evaluateAll((all) => all.map((one) => parseFloat(one.querySelector(".number + .number").textContent)));
    const sum = shares.reduce((one, other) => one + other, 0);
    check(Math.abs(sum - 100) < 0.1 * shares.length, `the rows of the first level are ${sum} % of the heap`);
    check((await tree.locator("li").count()) <= 300, "the tree has more than 300 rows");
    check((await text('#holders table[data-table="holders/roots"]')).includes("shop.Main.CACHE"), "the roots do not name the cache");
    await shot("holders-open");
    await accessible("an open tree");
  };

  /** The axes of the graphs. */
  const overTime = async () => {
    for (const axis of await page.locator('input[name="axis"]').all()) {
      await axis.check();
      check((await page.locator("#chart-live canvas").count()) === 1, `no graph over ${await axis.getAttribute("value")}`);
    }
    const labels = new Set();
    // A trace without calls has no axis of them.
    const axes = await page.locator('input[name="axis"]').evaluateAll((inputs) => inputs.map((input) => input.value));
    for (const axis of axes.slice(-2)) {
      await page.locator(`input[name="axis"][value="${axis}"]`).check();
      labels.add(await page.locator("#chart-live .u-over").getAttribute("aria-label"));
    }
    check(labels.size === 2, "the axis makes no difference");
    await page.locator('input[name="axis-measure"][value="objects"]').check();
    check((await page.locator("#chart-live .u-over").getAttribute("aria-label")).includes("object"), "the graph does not show objects");
  };

  /** The flame graph: search, zoom, keyboard, other weights. */
  const flame = async (tab) => {
    await visit(tab);
    const boxes = page.locator("#flame-graph g.frame");
    const all = await boxes.count();
    check(all > 5, `the flame graph has ${all} boxes`);
    const name = (await boxes.nth(Math.min(3, all - 1)).getAttribute("aria-label")).split(":")[0].split(" (")[0];
    const labels = await page.locator("#flame-graph .d3-flame-graph-label").evaluateAll((texts) => texts.map((one) => one.textContent));
    check(!labels.some((label) => /^(java|shop)\./.test(label)), `labels have packages: ${labels.filter((label) => label.includes(".")).slice(0, 3)}`);
    const titles = await page.locator("#flame-graph title").evaluateAll((texts) => texts.map((one) => one.textContent));
    check(titles.some((title) => title.includes("java.lang.") || title.includes("shop.")), "tooltips do not have packages");
    await page.locator("#flame-search").fill(name.slice(0, 40));
    check((await text("#flame-details")).startsWith("found "), `a search for ${name} says ${await text("#flame-details")}`);
    await shot(`${tab}-search`);
    await page.locator("#flame-search").fill("no such name anywhere");
    check((await text("#flame-details")) === "found nothing", "a search for nothing finds something");
    await page.locator("#flame-search").fill("");
    // Boxes that are out of sight when another fills the width are not there.
    const label = await boxes.nth(2).getAttribute("aria-label");
    const width = () => page.locator("#flame-graph g.frame").evaluateAll(
      (frames, wanted) => Number(frames.find((frame) => frame.getAttribute("aria-label") === wanted)?.querySelector("rect").getAttribute("width") ?? 0), label);
    const before = await width();
    await boxes.nth(2).dispatchEvent("click");
    await page.waitForTimeout(50);
    check((await width()) > before, `a click on ${label} makes it ${await width()} wide, from ${before}`);
    await page.locator("#flame-reset").click();
    await boxes.first().focus();
    await page.keyboard.press("ArrowDown");
    check((await page.evaluate(() => document.activeElement.getAttribute("aria-label"))) !== (await boxes.first().getAttribute("aria-label")), "the arrow keys do not move in the flame graph");
    await page.keyboard.press("Enter");
    await page.keyboard.press("Escape");
    await page.locator('input[name="flame"]').last().check();
    check((await boxes.count()) > 3, "there is no second graph");
    await shot(`${tab}-second`);
    await page.locator('input[name="flame-measure"][value="objects"]').check();
    for (const part of await page.locator("#flame-part option").all()) {
      await page.locator("#flame-part").selectOption(await part.getAttribute("value"));
    }
    await page.locator("#flame-part").selectOption("0");
  };

  /** From a class to its lifetimes. */
  const classLink = async () => {
    await page.locator('input[name="flame"][value="bySite"]').check();
    const boxes = page.locator("#flame-graph g.frame");
    const link = page.locator("#flame-class a");
    await boxes.nth(1).click();
    check((await link.count()) === 1, "a box of a site does not lead to its class");
    await link.click();
    await page.waitForTimeout(50);
    check((await page.locator('[role="tabpanel"]:visible').getAttribute("id")) === "lifetimes", "the link does not lead to lifetimes");
  };

  /** Tables: sort and filter. */
  const sorting = async (table) => {
    await visit(table.split("/")[0]);
    // Which of the columns of numbers it is.
    const place = await page.locator(`table[data-table="${table}"] thead th.number`).evaluateAll(
      (headings) => headings.findIndex((heading) => heading.textContent.startsWith("Objects")));
    const heading = page.locator(`table[data-table="${table}"] thead th`, { hasText: "Objects" });
    await heading.locator("button").click();
    check((await heading.getAttribute("aria-sort")) === "descending", "a table is not sorted");
    const counts = await page.locator(`table[data-table="${table}"] tbody tr`).evaluateAll(
      (rows, at) => rows.map((row) => Number(row.querySelectorAll("td.number")[at].dataset.value)), place);
    check(counts.every((count, at) => at === 0 || counts[at - 1] >= count), "rows are not in order");
    const filter = page.locator(`input[data-filter="${table}"]`);
    if (await filter.count()) {
      await filter.fill("no such class");
      check((await page.locator(`table[data-table="${table}"] tbody tr:visible`).count()) === 0, "a filter keeps what does not match");
      await filter.fill("");
    }
    const command = page.locator(`table[data-table="${table}"] tbody details`).first();
    await command.locator("summary").click();
    check((await command.innerText()).includes(isDiff ? "et-trace diff " : "et-trace report "), "a row does not say its command");
    const copy = page.locator(`table[data-table="${table}"] tbody .copy`).first();
    await copy.click();
    await page.waitForTimeout(100);
    check((await copy.innerText()) === "Copied", `the command of a row is not copied: ${await copy.innerText()}`);
    // Whatever a name has in it: nothing of what is pasted is a command of its own, or cannot be seen.
    const commands = await page.locator(".command code").evaluateAll((all) => all.map((one) => one.textContent));
    check(!commands.some((one) => /[\p{Cc}\u202a-\u202e\u2066-\u2069]/u.test(one)), "a command has control characters");
  };

  /** Another moment, other rows. */
  const moments = async () => {
    await visit("alive");
    const at = async () => `${await text("#moment-says")} ${await text("#alive-classes")}`;
    const end = await at();
    await page.locator("#moment").focus();
    await page.keyboard.press("Home");
    check((await at()) !== end, "another moment shows the same");
    await page.locator("#moment").fill("20");
    for (const axis of await page.locator('input[name="alive-axis"]').all()) {
      await axis.check();
      check((await page.locator("#chart-moment canvas").count()) === 1, `no moments over ${await axis.getAttribute("value")}`);
    }
    await page.locator("#alive-search").fill("no such name anywhere");
    check((await text("#alive-classes")) === "Nothing.", "a search among what is alive finds what is not there");
    await page.locator("#alive-search").fill("");
    await page.locator("#alive-sites details").first().locator("summary").click();
    const printed = await page.locator("#alive-sites details code").first().innerText();
    check(/ --show alive\/sites --at tick:\d+ --match /.test(printed), `a row has no command: ${printed}`);
    await accessible("alive at a moment");
    // The ages of one class.
    await visit("lifetimes");
    await page.locator('table[data-table="lifetimes/sites"] button.row').first().click();
    check((await text("#ages-of")) !== "all objects", "a row does not show its ages");
    await page.locator("#ages-all").click();
    check((await text("#ages-of")) === "all objects", "all objects are not shown again");
  };

  /** Lines of source: below the names of sites, with those around them when one clicks. */
  const source = async () => {
    const LINE = "page = new Page(product);";
    const opens = async (where, place) => {
      const details = place.locator("details.source", { hasText: LINE }).first();
      check((await details.count()) === 1, `${where}: no line of source`);
      const around = details.locator("pre");
      check(!(await around.isVisible()), `${where}: the lines around are shown before anybody asks`);
      await details.locator("summary").click();
      check(await around.isVisible(), `${where}: a click does not open the lines around`);
      const lines = await around.locator(".line").count();
      check(lines > 5, `${where}: ${lines} lines around`);
      const here = around.locator(".here");
      check((await here.innerText()).trim() === LINE && (await here.getAttribute("data-line")) === "25", `${where}: the line that is marked is ${await here.innerText()}`);
      check((await details.locator(".file").innerText()) === "shop/ProductCache.java:25", `${where}: ${await details.locator(".file").innerText()}`);
    };
    await visit("overview");
    const finding = page.locator(".finding").filter({ has: page.locator("details.source", { hasText: LINE }) }).first();
    await finding.locator("summary").first().click();
    await opens("a finding", finding);
    await visit("lifetimes");
    await opens("a site", page.locator('table[data-table="lifetimes/sites"]'));
    // The name is still the button that shows its ages, and what is around a line is not what is filtered.
    await page.locator('table[data-table="lifetimes/sites"] tr', { hasText: LINE }).first().locator("button.row").click();
    check((await text("#ages-of")).startsWith("shop.ProductCache.page:25"), `a site shows the ages of ${await text("#ages-of")}`);
    await visit("alive");
    await opens("a site that was alive", page.locator("#alive-sites"));
    await visit("allocation");
    await opens("the table of sources", page.locator('table[data-table="allocation/source"]'));
    await accessible("lines of source");
    await page.locator('input[name="flame"][value="bySite"]').check();
    const box = page.locator("#flame-graph g.frame").filter({ has: page.locator("title", { hasText: "shop.ProductCache.page:25" }) }).first();
    await box.dispatchEvent("click");
    check((await page.locator("#flame-class details.source[open] .here").innerText()).trim() === LINE, "a box of a site does not show its line");
    await shot("allocation-source");
  };

  /** In the dark. */
  const dark = async () => {
    await page.emulateMedia({ colorScheme: "dark", reducedMotion: "reduce" });
    for (const id of PAGES) {
      await visit(id);
      await page.waitForTimeout(60);
      await shot(`${id}-dark`);
      // Only colours are others than before.
      if (["overview", "allocation", "holders", "suspects", "contexts"].includes(id)) {
        await accessible(`${id} in the dark`, ["color-contrast"]);
      }
    }
  };

  /** On a small screen, and on paper. */
  const sizes = async () => {
    await page.emulateMedia({ colorScheme: "light", reducedMotion: "reduce" });
    for (const [width, id] of [[420, "overview"], [500, "overview"], ...(isDiff ? [] : [[500, "holders"]])]) {
      await page.setViewportSize({ width, height: 900 });
      await visit(id);
      await page.waitForTimeout(250);
      const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
      check(wide <= 0, `${id} is ${wide} pixels wider than a screen of ${width}`);
      await shot(`${id}-${width}`);
    }
    await page.setViewportSize({ width: 1280, height: 900 });
    if (!isDiff && !withoutDeaths) {
      await visit("suspects");
      await page.waitForTimeout(250);
      const madeIn = page.locator('table[data-table="suspects/growing"] td.long').first();
      const { width } = await madeIn.boundingBox();
      check(width >= 200, `"Made in" is ${width} pixels wide on a screen of 1280`);
      await shot("suspects-1280");
    }
    await page.setViewportSize({ width: 1400, height: 950 });
    // What is seen, and if that is asked for all pages, though nobody has looked at them.
    await page.reload();
    await page.emulateMedia({ media: "print" });
    const printed = () => page.locator('[role="tabpanel"]:visible').count();
    check((await printed()) === 1, `${await printed()} pages are printed where one is seen`);
    await page.pdf({ path: join(screenshots, "overview.pdf"), format: "A4" });
    await page.evaluate(() => (window.print = () => window.dispatchEvent(new Event("beforeprint"))));
    await page.locator("#print-all").dispatchEvent("click");
    check((await printed()) === PAGES.length, `${await printed()} pages are printed of all`);
    const closed = await page.locator("details.unfold").evaluateAll((all) => all.filter((one) => !one.open).length);
    check(closed === 0, `${closed} parts of the pages are printed closed`);
    const drawn = await page.locator("#flame-graph g.frame rect").evaluateAll((boxes) => boxes.filter((box) => Number(box.getAttribute("width")) > 0).length);
    check(drawn > 5, `the flame graph is printed with ${drawn} boxes`);
    const rows = await page.locator(".scroll table").evaluateAll((tables) => Math.max(...tables.map((table) => [...table.tBodies[0].rows].filter((row) => row.offsetParent).length)));
    check(rows <= 20, `a table is printed with ${rows} rows`);
    const wideOnPaper = await page.locator("#flame-graph svg").evaluateAll((all) => Math.max(0, ...all.map((one) => one.getBoundingClientRect().width)));
    check(wideOnPaper <= 720, `the flame graph is ${wideOnPaper} pixels wide on paper`);
    await page.evaluate(() => window.dispatchEvent(new Event("afterprint")));
    check((await printed()) === 1, "after printing there are more pages than one");
    const stillOpen = await page.locator("#overview details.unfold[open]").count();
    check(stillOpen === 0, `${stillOpen} parts of the overview stay open after printing`);
    await page.pdf({ path: join(screenshots, "report.pdf"), format: "A4" });
  };

  if (hasSource) {
    await source();
    await page.emulateMedia({ colorScheme: "dark", reducedMotion: "reduce" });
    await accessible("lines of source in the dark", ["color-contrast"]);
    await sizes();
  } else {
    await tabs();
    if (isDiff) {
      await flame("contexts");
      await sorting("classes/changes");
    } else {
      await glances();
      await overTime();
      await flame("allocation");
      await classLink();
      await sorting("allocation/classes");
      if (!withoutDeaths) {
        await moments();
        await trees();
      }
    }
    await dark();
    await sizes();
  }
} catch (error) {
  found.push(`broke off: ${error.message}`);
} finally {
  await browser.close();
  rmSync(profile, { recursive: true, force: true });
}
found.forEach((line) => console.log(line));
console.log(`${found.length} findings`);
process.exit(found.length === 0 ? 0 : 1);
