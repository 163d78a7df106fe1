// A page of the explorer in a browser, for the scripts beside this one.
import { mkdtempSync, mkdirSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { chromium } from "playwright-core";

/**
 * Opens the page that the command line names (`node SCRIPT URL SCREENSHOTS CHROMIUM`) and has `script` look at it. Errors of the page are findings; prints
 * a line for each finding, and fails if there is one.
 */
export const look = async (script) => {
  const [url, screenshots, executablePath] = process.argv.slice(2);
  if (!url || !screenshots || !executablePath) {
    console.error(`usage: node ${basename(process.argv[1])} URL SCREENSHOTS CHROMIUM`);
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
  try {
    const page = await browser.newPage();
    page.setDefaultTimeout(60_000);
    page.on("pageerror", (error) => found.push(`script: ${error.message}`));
    const check = (holds, what) => {
      if (!holds) {
        found.push(what);
      }
    };
    const shot = (name, options = {}) => page.screenshot({ path: join(screenshots, `${name}.png`), ...options });
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
    const shown = (view) => page.waitForFunction((id) => !document.getElementById(`view-${id}`)?.hidden && document.getElementById("views").getAttribute("aria-busy") === "false", view);
    const go = async (hash) => {
      await page.goto(`${url}#${hash}`);
      const view = new URLSearchParams(hash).get("view");
      await shown(view);
      return page.locator(`#view-${view}`);
    };
    await script({ page, url, check, shot, accessible, shown, go });
  } catch (error) {
    found.push(`broke off: ${error.message}`);
  } finally {
    await browser.close();
    rmSync(profile, { recursive: true, force: true });
  }
  found.forEach((line) => console.log(line));
  process.exit(found.length === 0 ? 0 : 1);
};
