// Walks through the explorer in Chromium, as somebody would who looks for a leak, and says what is wrong with it.
//
//   node browse.mjs URL SCREENSHOTS [CHROMIUM]
//
// By mouse from the findings to the flame graph, with back and forward; then by keyboard alone, in the dark, on a small screen and on paper.
// Screenshots go to a folder. Prints one line for each finding, and fails if there is one.
import { accessSync, constants, readFileSync, mkdtempSync, mkdirSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { chromium } from "playwright-core";

const NAMES = ["chromium", "chromium-browser", "google-chrome"];
const executable = () => {
  for (const folder of (process.env.PATH ?? "").split(delimiter)) {
    for (const name of NAMES) {
      try {
        accessSync(join(folder, name), constants.X_OK);
        return join(folder, name);
      } catch {
        // It is not there.
      }
    }
  }
  return null;
};

const [url, screenshots, executablePath = executable()] = process.argv.slice(2);
if (!url || !screenshots || !executablePath) {
  console.error("usage: node browse.mjs URL SCREENSHOTS [CHROMIUM]; without CHROMIUM, it is looked for on the PATH");
  process.exit(2);
}
mkdirSync(screenshots, { recursive: true });
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const VIEWS = ["findings", "groups", "objects", "object", "dominators", "treemap", "changes", "flame"];
const found = [];
const check = (holds, what) => {
  if (!holds) {
    found.push(what);
  }
};

const profile = mkdtempSync(join(tmpdir(), "et-explorer-"));
const browser = await chromium.launchPersistentContext(profile, {
  executablePath,
  headless: true,
  viewport: { width: 1400, height: 950 },
  colorScheme: "light",
  reducedMotion: "reduce",
  acceptDownloads: true,
  args: [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
  ],
});

try {
  const page = await browser.newPage();
  page.setDefaultTimeout(60_000);
  // Of answers that are errors, the browser writes a line by itself; those are asked for below.
  let refusals = 0;
  page.on("console", (message) => {
    if (message.text().includes("the server responded with a status of 4")) {
      refusals += 1;
    } else if (["error", "warning"].includes(message.type())) {
      found.push(`console: ${message.text()}`);
    }
  });
  page.on("pageerror", (error) => found.push(`script: ${error.message}`));
  page.on("dialog", (dialog) => {
    found.push(`a name out of the program ran as a script: ${dialog.message()}`);
    dialog.dismiss();
  });
  const origin = new URL(url).origin;
  page.on("request", (request) => check([origin, "null"].includes(new URL(request.url()).origin) || /^(data|blob):/.test(request.url()), `asks for ${request.url()}`));

  // ---- What is used below ----

  const state = () => page.evaluate(() => Object.fromEntries(new URLSearchParams(location.hash.slice(1))));
  const shot = (name) => page.screenshot({ path: join(screenshots, `${name}.png`) });
  const answer = (view) => page.locator(`#view-${view} .answer`);
  const text = async (selector) => (await page.locator(selector).first().innerText()).trim();
  /** Until a view is seen and has its answer. */
  const at = async (view, where) => {
    try {
      await page.waitForFunction((id) => {
        const seen = [...document.querySelectorAll('[role="tabpanel"]')].filter((panel) => !panel.hidden);
        return seen.length === 1 && seen[0].id === `view-${id}` && document.getElementById("views").getAttribute("aria-busy") === "false";
      }, view);
    } catch {
      throw new Error(`${where} does not lead to ${view}, but to ${page.url().split("#")[1]}`);
    }
    const failed = await page.locator(`#view-${view} .failure`).allInnerTexts();
    check(failed.length === 0, `${where}: ${failed.join("; ")}`);
  };
  /** Until what was asked for has been answered. */
  const settled = async () => {
    await page.waitForTimeout(150);
    await page.waitForFunction(() => document.getElementById("views").getAttribute("aria-busy") === "false");
  };
  const tab = async (view) => {
    await page.locator(`#tab-${view}`).click();
    await at(view, `the tab ${view}`);
  };
  /** What axe-core finds on what is visible. Run by itself: the page's own policy lets no other script in. */
  const accessible = async (where, rules) => {
    const session = await browser.newCDPSession(page);
    await session.send("Runtime.evaluate", { expression: axe });
    const { result, exceptionDetails } = await session.send("Runtime.evaluate", {
      expression: `axe.run(document, ${rules ? JSON.stringify({ runOnly: rules }) : "{}"}).then((all) => JSON.stringify(all.violations.map((one) =>
        one.id + ": " + one.help + " (" + one.nodes.slice(0, 3).map((node) => node.target.join(" ") + " " + node.html.slice(0, 160) + " " + (node.any[0]?.message ?? "")).join("; ") + ")")))`,
      awaitPromise: true,
      returnByValue: true,
    });
    check(!exceptionDetails, `axe-core failed on ${where}: ${exceptionDetails?.text}`);
    JSON.parse(result.value ?? "[]").forEach((violation) => found.push(`${where}: ${violation}`));
    await session.detach();
  };
  const says = () => text("#moment-says");

  // ---- The walk, by mouse ----

  await page.goto(url);
  await at("findings", "the address");
  check((await page.locator("#timeline canvas").count()) === 1, "there is no timeline");
  check(/^At the end, .*: .* (alive|allocated so far) in [\d,]+ objects?$/.test(await says()), `the moment reads "${await says()}"`);
  check((await page.locator(".finding").count()) > 0, "there are no findings");
  await shot("findings");
  await accessible("findings");

  // From a finding to its groups.
  const way = page.locator(".finding a", { hasText: /^(In groups|What is alive)/ }).first();
  if (await way.count()) {
    await way.click();
    await at("groups", "a finding");
    check((await page.evaluate(() => document.activeElement?.tagName)) === "H2", "after a link, the heading of what it leads to has no focus");
    check((await page.locator("#view-groups tbody tr").count()) > 0, `a finding leads to groups without lines: ${page.url().split("#")[1]}`);
    await page.goBack();
    await at("findings", "back");
    await page.goForward();
    await at("groups", "forward");
  } else {
    found.push("no finding leads to groups");
  }

  // All groups; a level is opened, and open after a reload.
  await page.goto(`${url}#view=groups`);
  await at("groups", "a link to groups");
  const rows = page.locator("#view-groups tbody tr");
  const closed = await rows.count();
  check(closed > 3, `there are ${closed} groups`);
  await page.locator("#view-groups button.toggle").first().click();
  await page.waitForFunction((before) => document.querySelectorAll("#view-groups tbody tr").length > before, closed);
  await shot("groups");
  await accessible("groups");
  await page.reload();
  await at("groups", "a reload");
  check((await rows.count()) > closed, "a level that was opened is closed after a reload");
  // By other levels.
  await page.locator("#view-groups button.add", { hasText: "package" }).click();
  await settled();
  check((await state()).by === "class,site,package", `a level that was added gives ${(await state()).by}`);
  for (let times = 0; times < 2; times += 1) {
    await page.locator('#view-groups [aria-label="Move package up"]').click();
    await settled();
  }
  check((await state()).by === "package,class,site", `a level that was moved gives ${(await state()).by}`);
  check((await text("#view-groups thead th")).startsWith("package"), "the table is not by package");
  await page.locator('#view-groups [aria-label="Do not group by package"]').click();
  await settled();
  // Only some.
  const some = await page.locator("#view-groups tbody .to-objects").nth(1).textContent();
  await page.locator('#view-groups input[data-filter="class"]').fill(some);
  await page.waitForFunction((name) => new URLSearchParams(location.hash.slice(1)).get("class") === name, some);
  await settled();
  check((await rows.count()) === 1, `only ${some} gives ${await rows.count()} lines`);
  await page.locator('#view-groups input[data-filter="class"]').fill("");
  await page.waitForFunction(() => !new URLSearchParams(location.hash.slice(1)).get("class"));
  await settled();
  for (const what of ["made", "died", "alive"]) {
    const choice = page.locator(`#view-groups input[value="${what}"]`);
    if (await choice.isEnabled()) {
      await choice.check();
      await settled();
      check((await rows.count()) > 0, `nothing ${what}`);
    }
  }

  // From a group to its objects.
  await page.locator("#view-groups tbody .to-objects").first().click();
  await at("objects", "a group");
  const listed = page.locator("#view-objects tbody tr[data-index]");
  const count = Number((await page.locator("#view-objects table").getAttribute("aria-rowcount")) ?? 1) - 1;
  check(count > 0, "a group has no objects");
  check((await listed.count()) <= Math.min(count, 80), `${await listed.count()} rows are made of ${count} objects`);
  await shot("objects");
  await accessible("objects");
  // All of them, and to the last.
  await tab("objects");
  await page.goto(`${url}#view=objects`);
  await at("objects", "a link to objects");
  const all = Number(await page.locator("#view-objects table").getAttribute("aria-rowcount")) - 1;
  await page.locator("#view-objects .scroll").evaluate((place) => (place.scrollTop = place.scrollHeight));
  await page.waitForFunction((last) => document.querySelector(`#view-objects tr[data-index="${last}"] a`), all - 1).catch(() => found.push(`the last of ${all} objects is not seen`));
  check((await listed.count()) <= 80, `${await listed.count()} rows are made at the end of ${all} objects`);
  await page.locator("#view-objects .scroll").evaluate((place) => (place.scrollTop = 0));
  await page.locator("#view-objects thead button", { hasText: "Age" }).click();
  await settled();
  check((await state()).sort === "age", "a click on a heading does not sort");
  const saved = page.waitForEvent("download");
  await page.locator("#view-objects .foot button", { hasText: "CSV" }).click();
  const csv = readFileSync(await (await saved).path(), "utf8");
  check(csv.startsWith("id,class,size,") && csv.trim().split("\r\n").length > 1, `the CSV begins with ${csv.slice(0, 60)}`);
  const command = await text("#view-objects .command code");
  check(command.startsWith("et-trace "), `the command is ${command}`);

  // From an object to its holder. Not every object has one: the first of a class that most programs have.
  await page.goto(`${url}#view=objects&class=java.util.HashMap$Node`.replace("$", "%24"));
  await at("objects", "a link to objects of a class");
  if ((await page.locator("#view-objects .to-object").count()) === 0) {
    await page.goto(`${url}#view=objects&sort=birth`);
    await at("objects", "a link to the youngest objects");
  }
  await page.locator("#view-objects .to-object").first().click();
  await at("object", "a row of objects");
  const one = (await state()).id;
  check((await text("#view-object h2")).includes(one), "the heading does not name the object");
  check((await page.locator(".life-mark").count()) > 0, "its life has no marks");
  check((await page.locator(".way .chain li").count()) > 0, "there is no path from a root to what is alive");
  await shot("object");
  await accessible("object");
  const holder = page.locator('#view-object section:has(h3:text-is("Held by")) tbody td a').first();
  if (await holder.count()) {
    await holder.click();
    await page.waitForFunction((before) => new URLSearchParams(location.hash.slice(1)).get("id") !== before, one);
    await at("object", "a holder");
    await page.goBack();
    await page.waitForFunction((id) => new URLSearchParams(location.hash.slice(1)).get("id") === id, one);
    await at("object", "back from the holder");
  } else {
    found.push(`nothing holds ${one}, which is alive`);
  }
  // A mark sets the moment; so do the changes before and after.
  await page.locator(".life-mark").first().click();
  await page.waitForFunction(() => /^\d+$/.test(new URLSearchParams(location.hash.slice(1)).get("at") ?? ""));
  await at("object", "a mark");
  const first = (await state()).at;
  check((await page.locator(".life-mark[aria-current]").count()) > 0, "the mark that leads to the moment does not say so");
  const next = page.locator("#view-object button", { hasText: "next change" });
  if (await next.isEnabled()) {
    await next.click();
    await settled();
    check(Number((await state()).at) > Number(first), "the next change is not later");
    await page.locator("#view-object button", { hasText: "previous change" }).click();
    await settled();
    check((await state()).at === first, "the change before the next one is another one");
  }
  await page.locator("#view-object details.text summary").click();
  check((await text("#view-object pre")).length > 20, "there is no text of its life");
  // Its way from a root, step by step.
  await page.goto(`${url}#view=object&id=${one}`);
  await at("object", "a link to an object");
  const step = page.locator(".way .chain a").first();
  await step.click();
  await at("object", "a step of the path");

  // Dominators: opened, and what is below one object.
  await tab("dominators");
  const before = await page.locator("#view-dominators tbody tr").count();
  await page.locator("#view-dominators button.toggle").first().click();
  await page.waitForFunction((rows) => document.querySelectorAll("#view-dominators tbody tr").length > rows, before);
  await shot("dominators");
  await accessible("dominators");
  await page.locator("#view-dominators a", { hasText: "As a map" }).click();
  await at("treemap", "as a map");
  check((await page.locator(".map .box").count()) > 2, "the map has no boxes");
  await shot("treemap");
  await accessible("treemap");
  const largest = page.locator(".map .box.level-1").first();
  await largest.click({ position: { x: 5, y: 5 } });
  await settled();
  check(Boolean((await state()).of) || (await state()).view === "object", "a click on a box neither zooms nor leads to its object");
  if ((await state()).view === "treemap") {
    check((await page.locator("#view-treemap .crumbs button").count()) === 1, "the way back is not seen");
    await page.locator("#view-treemap .says a").click();
    await at("object", "a box");
  }
  await page.goBack();

  // Changes between two moments, chosen by dragging.
  await tab("changes");
  const over = await page.locator("#timeline .u-over").boundingBox();
  const press = async (from, to) => {
    await page.mouse.move(over.x + over.width * from, over.y + over.height / 3);
    await page.mouse.down();
    await page.mouse.move(over.x + over.width * ((from + to) / 2), over.y + over.height / 3, { steps: 4 });
    await page.mouse.move(over.x + over.width * to, over.y + over.height / 3, { steps: 4 });
    await page.mouse.up();
  };
  await press(0.3, 0.7);
  await settled();
  const range = await state();
  check(Number(range.from) > 0 && Number(range.to) > Number(range.from), `a drag chooses ${range.from} to ${range.to}`);
  check(!(await text("#range-says")).includes("whole run to"), "the range is not said");
  check((await page.locator("#view-changes tbody tr").count()) > 0, "nothing changed in the range");
  for (const by of ["site", "context", "root", "class"]) {
    await page.locator(`#view-changes input[value="${by}"]`).check();
    await settled();
    check((await page.locator("#view-changes tbody tr").count()) > 0, `nothing changed by ${by}`);
  }
  await shot("changes");
  await accessible("changes");
  await page.locator("#timeline .u-over").dblclick({ position: { x: over.width / 2, y: over.height / 3 } });
  await settled();
  check((await state()).from === undefined, "a double click does not choose the whole run");
  // A click sets the moment, the handle can be dragged.
  await page.mouse.click(over.x + over.width * 0.5, over.y + over.height / 3);
  await settled();
  const middle = Number((await state()).at);
  check(middle > 0, `a click on the timeline sets ${(await state()).at}`);
  await press(0.5, 0.25);
  await settled();
  check(Number((await state()).at) < middle && Number((await state()).at) > 0, "the handle cannot be dragged");
  // Over each axis.
  for (const axis of await page.locator('input[name="axis"]').all()) {
    await axis.check();
    check((await page.locator("#timeline canvas").count()) === 1, `no timeline over ${await axis.getAttribute("value")}`);
  }
  await page.locator('input[name="axis"]').first().check();

  // The flame graph: search, zoom, other weights, the flat table, stacks to save.
  await page.goto(`${url}#view=flame&what=made`);
  await at("flame", "a link to the flame graph");
  const boxes = page.locator("#view-flame g.frame");
  check((await boxes.count()) > 5, `the flame graph has ${await boxes.count()} boxes`);
  await page.locator("#view-flame label", { hasText: "Search" }).locator("input").fill("^java\\.(lang|util)\\.");
  await page.waitForFunction(() => document.querySelector("#view-flame .says").textContent.startsWith("found "));
  await shot("flame");
  await page.locator("#view-flame label", { hasText: "Search" }).locator("input").fill("(");
  await page.waitForFunction(() => document.querySelector("#view-flame .says").textContent.includes("not a regular expression"));
  await page.locator("#view-flame label", { hasText: "Search" }).locator("input").fill("");
  await page.waitForFunction(() => document.querySelector("#view-flame .says").textContent === "");
  await accessible("flame");
  const stacks = page.waitForEvent("download");
  await page.locator("#view-flame button", { hasText: "Collapsed stacks" }).click();
  const collapsed = readFileSync(await (await stacks).path(), "utf8").trim().split("\n");
  check(collapsed.every((line) => / \d+$/.test(line)), `collapsed stacks have lines like ${collapsed[0]}`);
  const forPprof = page.waitForEvent("download");
  await page.locator("#view-flame button", { hasText: "pprof" }).click();
  const packed = readFileSync(await (await forPprof).path());
  check(packed[0] === 0x1f && packed[1] === 0x8b && packed.length > 200, `${packed.length} bytes for pprof`);
  await page.locator('#view-flame input[value="objects"]').check();
  await settled();
  await page.locator('#view-flame input[value="sites"]').check();
  await settled();
  check((await boxes.count()) > 3, "there is no graph from the sites");
  await page.locator('#view-flame input[value="flat"]').check();
  await settled();
  check((await page.locator("#view-flame tbody tr").count()) > 3, "the flat table has no lines");
  await shot("flame-flat");
  await accessible("flat table");

  // ---- Errors, and questions that were overtaken ----

  await page.goto(`${url}#view=object&id=zzz`);
  await page.waitForFunction(() => document.querySelector("#view-object .failure"));
  check((await text("#view-object .failure")).length > 10 && refusals > 0, "an error is no sentence");
  await page.goto(`${url}#view=findings`);
  await at("findings", "a link after an error");
  await page.goto(`${url}#view=nowhere`);
  await at("findings", "a link to a view that there is not");
  let aborted = 0;
  page.on("requestfailed", (request) => (aborted += request.failure()?.errorText === "net::ERR_ABORTED" && request.url().includes("/tree") ? 1 : 0));
  await page.route(/\/api\/tree/, async (route) => {
    await new Promise((resolve) => setTimeout(resolve, 1500));
    await route.continue().catch(() => {});
  });
  // No answer to it is known by now.
  await page.goto(`${url}#view=groups&by=thread%2Cage`);
  await page.waitForFunction(() => !document.getElementById("progress").hidden);
  await page.locator("#tab-dominators").click();
  await at("dominators", "a tab, while another answer is being waited for");
  check(aborted > 0, "a question that was overtaken is not aborted");
  await page.unroute(/\/api\/tree/);

  // ---- By keyboard alone ----

  await page.goto(`${url}#view=groups`);
  await at("groups", "a link to groups");
  await page.locator("#timeline [role=slider]").focus();
  const moments = [await says()];
  for (const key of ["Home", "ArrowRight", "Shift+ArrowRight", "ArrowLeft", "End"]) {
    await page.keyboard.press(key);
    const now = await says();
    check(now !== moments.at(-1), `${key} on the timeline does not go elsewhere`);
    check((await page.locator("[role=slider]").getAttribute("aria-valuetext")) === now, `${key}: the slider does not say what is written`);
    moments.push(now);
  }
  check(moments[0] === moments.at(-1), "End does not go to the end");
  await settled();
  check((await page.evaluate(() => document.activeElement.getAttribute("role"))) === "slider", "the timeline loses the focus while everything follows");
  await page.keyboard.press("Home");
  await page.keyboard.press("PageDown");
  await settled();
  // Tab goes on to the buttons of the range, then to the views.
  const focused = () => page.evaluate(() => {
    const { id, textContent, tagName } = document.activeElement;
    return id || `${tagName} ${textContent.trim().slice(0, 30)}`;
  });
  for (let tabs = 0; tabs < 12 && !(await focused()).startsWith("tab-"); tabs += 1) {
    await page.keyboard.press("Tab");
  }
  check((await focused()) === "tab-groups", `Tab does not reach the views, but ${await focused()}`);
  await page.keyboard.press("ArrowRight");
  await at("objects", "an arrow on the tabs");
  await page.keyboard.press("ArrowLeft");
  await at("groups", "an arrow on the tabs");
  await page.keyboard.press("End");
  await at("sql", "End on the tabs");
  await page.keyboard.press("Home");
  await at("findings", "Home on the tabs");
  await page.keyboard.press("ArrowRight");
  await at("groups", "an arrow on the tabs");
  // In the tree: opened by an arrow, then to the objects by Enter, to an object by Enter.
  const toggles = page.locator("#view-groups button.toggle");
  await toggles.first().focus();
  await page.keyboard.press("ArrowRight");
  await page.waitForFunction(() => document.querySelector("#view-groups button.toggle").getAttribute("aria-expanded") === "true");
  await page.waitForTimeout(100);
  await page.keyboard.press("ArrowLeft");
  check((await toggles.first().getAttribute("aria-expanded")) === "false", "the left arrow does not close a level");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  await at("objects", "Enter on a group");
  await page.locator("#view-objects .scroll").focus();
  await page.keyboard.press("ArrowDown");
  await page.waitForFunction(() => document.activeElement?.classList.contains("to-object"));
  await page.keyboard.press("Enter");
  await at("object", "Enter on an object");
  // What was drawn again keeps the focus.
  await page.goto(`${url}#view=objects`);
  await at("objects", "a link to objects");
  await page.locator("#view-objects thead button", { hasText: "Born" }).focus();
  await page.keyboard.press("Enter");
  await settled();
  check((await focused()) === "BUTTON Born", `after sorting, the focus is on ${await focused()}`);
  // The flame graph.
  await page.goto(`${url}#view=flame`);
  await at("flame", "a link to the flame graph");
  await boxes.first().focus();
  const top = await page.evaluate(() => document.activeElement.getAttribute("aria-label"));
  await page.keyboard.press("ArrowDown");
  check((await page.evaluate(() => document.activeElement.getAttribute("aria-label"))) !== top, "the arrow keys do not move in the flame graph");
  await page.keyboard.press("Enter");
  await page.keyboard.press("Escape");

  // ---- In the dark, on a small screen, on paper ----

  await page.emulateMedia({ colorScheme: "dark", reducedMotion: "reduce" });
  for (const view of VIEWS) {
    await page.goto(`${url}#view=${view}&id=${one}`);
    await at(view, `a link to ${view}`);
    await page.waitForTimeout(60);
    await shot(`${view}-dark`);
    // Only colours are others than before.
    await accessible(`${view} in the dark`, ["color-contrast"]);
  }
  await page.emulateMedia({ colorScheme: "light", reducedMotion: "reduce" });
  await page.setViewportSize({ width: 500, height: 900 });
  await page.waitForTimeout(300);
  for (const view of VIEWS) {
    await page.goto(`${url}#view=${view}&id=${one}`);
    await at(view, `a link to ${view}`);
    await page.waitForTimeout(60);
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
    check(wide <= 0, `${view} is ${wide} pixels wider than a screen of 500`);
    await shot(`${view}-small`);
  }
  await accessible("a small screen");
  await page.setViewportSize({ width: 1400, height: 950 });
  await page.waitForTimeout(300);
  for (const view of ["groups", "object", "flame"]) {
    await page.goto(`${url}#view=${view}&id=${one}`);
    await at(view, `a link to ${view}`);
    await page.pdf({ path: join(screenshots, `${view}.pdf`), format: "A4" });
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
