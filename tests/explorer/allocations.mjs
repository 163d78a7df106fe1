// Looks at a trace without calls and deaths: what was made can be seen, and the page says how to have the rest.
//
//   node allocations.mjs URL SCREENSHOTS CHROMIUM
//
// The traced program is tests/java/explorer/Service.java. Prints what is wrong, and fails if something is.
import { mkdtempSync, mkdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium } from "playwright-core";

const [url, screenshots, executablePath] = process.argv.slice(2);
if (!url || !screenshots || !executablePath) {
  console.error("usage: node allocations.mjs URL SCREENSHOTS CHROMIUM");
  process.exit(2);
}
mkdirSync(screenshots, { recursive: true });
const profile = mkdtempSync(join(tmpdir(), "et-explorer-"));
const browser = await chromium.launchPersistentContext(profile, {
  executablePath,
  headless: true,
  viewport: { width: 1400, height: 950 },
  args: ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"],
});

try {
  const page = await browser.newPage();
  page.setDefaultTimeout(60_000);
  const check = (holds, what) => {
    if (!holds) {
      throw new Error(what);
    }
  };
  page.on("pageerror", (error) => {
    console.error(`script: ${error.message}`);
    process.exitCode = 1;
  });
  const at = (view) => page.waitForFunction((id) => !document.getElementById(`view-${id}`).hidden && document.getElementById("views").getAttribute("aria-busy") === "false", view);
  const tab = async (view) => {
    await page.locator(`#tab-${view}`).click();
    await at(view);
  };
  const answer = (view) => page.locator(`#view-${view} .answer`).innerText();

  await page.goto(url);
  await at("findings");
  await tab("groups");
  const warnings = await page.locator("#warnings").innerText();
  check(/What was alive is not known\. Here deaths cannot be computed: .*Instrument with --events all/.test(warnings), `it warns: ${warnings}`);
  const whole = await page.locator("#view-groups tbody tr").count();
  check(whole > 3 && (await answer("groups")).includes("Service$Session"), `groups: ${await answer("groups")}`);
  check(await page.locator('#view-groups input[value="alive"]').isDisabled(), "what is alive can be chosen");
  check((await page.locator('input[name="axis"][value="ticks"]').count()) === 0, "there is an axis of calls");
  const objects = async () => Number((await page.locator("#view-objects table").getAttribute("aria-rowcount")) ?? 0) - 1;
  await tab("objects");
  const all = await objects();
  // A range over the timeline: a part of them.
  const over = await page.locator("#timeline .u-over").boundingBox();
  await page.mouse.move(over.x + over.width * 0.3, over.y + over.height / 3);
  await page.mouse.down();
  await page.mouse.move(over.x + over.width * 0.7, over.y + over.height / 3, { steps: 8 });
  await page.mouse.up();
  await page.waitForTimeout(400);
  await page.waitForFunction(() => document.getElementById("views").getAttribute("aria-busy") === "false");
  const some = await objects();
  check(some > 0 && some < all, `${some} of ${all} objects are in the range`);
  check((await page.locator("#view-objects .foot").innerText()).includes("--born bytes:"), await page.locator("#view-objects .foot").innerText());
  await tab("flame");
  check((await page.locator("#view-flame g.frame").count()) > 3, "the flame graph is empty");
  await page.screenshot({ path: join(screenshots, "allocations.png") });
  // What takes more says so.
  for (const view of ["dominators", "treemap", "changes"]) {
    await tab(view);
    check((await answer(view)).includes("Instrument with --events all"), `${view}: ${await answer(view)}`);
  }
  await tab("findings");
  check((await page.locator("#view-findings .failure").count()) === 0, await answer("findings"));
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
} finally {
  await browser.close();
  rmSync(profile, { recursive: true, force: true });
}
