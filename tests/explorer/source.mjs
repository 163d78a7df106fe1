// Lines of source at the sites of a served trace: in each view, with those around them when one clicks.
//
//   node source.mjs URL SCREENSHOTS CHROMIUM
//
// The traced program is tests/java/explorer/Service.java, and the explorer knows where that is. Prints one line for each finding, and fails if there is one.
import { mkdtempSync, mkdirSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium } from "playwright-core";

const [url, screenshots, executablePath] = process.argv.slice(2);
if (!url || !screenshots || !executablePath) {
  console.error("usage: node source.mjs URL SCREENSHOTS CHROMIUM");
  process.exit(2);
}
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
mkdirSync(screenshots, { recursive: true });
const profile = mkdtempSync(join(tmpdir(), "et-explorer-"));
const browser = await chromium.launchPersistentContext(profile, {
  executablePath,
  headless: true,
  viewport: { width: 1400, height: 950 },
  reducedMotion: "reduce",
  args: ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"],
});
const found = [];
const check = (holds, what) => {
  if (!holds) {
    found.push(what);
  }
};
/** What makes the sessions that leak. */
const LINE = "SESSIONS.put(customer, new Session(customer));";

try {
  const page = await browser.newPage();
  page.setDefaultTimeout(60_000);
  page.on("pageerror", (error) => found.push(`script: ${error.message}`));
  page.on("console", (message) => message.type() === "error" && found.push(`console: ${message.text()}`));
  const shot = (name) => page.screenshot({ path: join(screenshots, `${name}.png`) });
  const accessible = async (where) => {
    const session = await browser.newCDPSession(page);
    await session.send("Runtime.evaluate", { expression: axe });
    const { result } = await session.send("Runtime.evaluate", {
      expression: `axe.run(document).then((all) => JSON.stringify(all.violations.map((one) => one.id + ": " + one.help + " " + one.nodes[0].html.slice(0, 200))))`,
      awaitPromise: true,
      returnByValue: true,
    });
    JSON.parse(result.value ?? "[]").forEach((violation) => found.push(`${where}: ${violation}`));
    await session.detach();
  };
  const go = async (hash) => {
    await page.goto(`${url}#${hash}`);
    const view = new URLSearchParams(hash).get("view");
    await page.waitForFunction((id) => !document.getElementById(`view-${id}`)?.hidden && document.getElementById("views").getAttribute("aria-busy") === "false", view);
    return page.locator(`#view-${view}`);
  };
  const summary = (view) => view.locator("details.source summary", { hasText: LINE }).first();

  // In groups: the line is below the site; a click opens those around it.
  const groups = await go(`view=groups&by=site,class`);
  const row = groups.locator("tbody tr", { hasText: "Service.open:" }).first();
  await row.waitFor();
  await summary(row).waitFor();
  const around = row.locator("details.source pre");
  check(!(await around.isVisible()), "the lines around are shown before anybody asks for them");
  await summary(row).click();
  check(await around.isVisible(), "a click does not open the lines around");
  const lines = await around.locator(".line").allInnerTexts();
  check(lines.length > 5, `only ${lines.length} lines around`);
  check((await around.locator(".here").innerText()).trim() === LINE, `the line that is marked is ${await around.locator(".here").innerText()}`);
  const number = await around.locator(".here").getAttribute("data-line");
  check((await row.locator("th").innerText()).includes(`Service.open:${number}`), `line ${number} is not that of the site`);
  check((await row.locator(".file").innerText()) === `Service.java:${number}`, await row.locator(".file").innerText());
  await shot("source-groups");
  await accessible("groups");
  // By keyboard, too, and the row's own link still leads to its objects.
  await summary(row).focus();
  await page.keyboard.press("Enter");
  check(!(await around.isVisible()), "Enter does not close the lines");
  await row.locator("a.to-objects").first().click();
  await page.waitForFunction(() => !document.getElementById("view-objects").hidden);

  // In the list of objects there is room for the line; the others are in its tooltip.
  const objects = await go(`view=objects&class=Service$Session`);
  const cell = objects.locator(".source-of code", { hasText: LINE }).first();
  await cell.waitFor();
  check((await cell.getAttribute("title")).includes(`▶ ${number}  `), "the tooltip has no lines");
  await shot("source-objects");

  // Of one object they are open.
  await objects.locator("a.to-object").first().click();
  const one = page.locator("#view-object");
  await one.locator("details.source[open] .here", { hasText: LINE }).waitFor();
  await shot("source-object");
  await accessible("object");

  // Changes by site, and the flame graph.
  await summary(await go(`view=changes&compare=site`)).waitFor();
  const flame = await go(`view=flame&down=sites`);
  const boxes = flame.locator("g.frame");
  await boxes.first().waitFor();
  const box = boxes.filter({ has: page.locator("title", { hasText: "Service.open:" }) }).first();
  await box.dispatchEvent("click");
  await flame.locator("details.source[open] .here", { hasText: LINE }).waitFor();
  await shot("source-flame");

  // Sites of the JDK, whose source was not given, have none, and nothing is asked twice.
  const asked = [];
  page.on("request", (request) => request.url().includes("/api/source") && asked.push(request.url()));
  const again = await go(`view=groups&by=site`);
  await summary(again).waitFor();
  check(asked.length === 0, `lines are asked for twice: ${asked.length}`);
  const foreign = again.locator("tbody tr", { hasText: "java.util.HashMap" }).first();
  check((await foreign.count()) === 1 && (await foreign.locator("details").count()) === 0, "a site of the JDK has a line");
} catch (error) {
  found.push(`broke off: ${error.message}`);
} finally {
  await browser.close();
  rmSync(profile, { recursive: true, force: true });
}
found.forEach((line) => console.log(line));
process.exit(found.length === 0 ? 0 : 1);
