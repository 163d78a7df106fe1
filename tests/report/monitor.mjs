// Opens the page of et-monitor in Chromium, as a user would, and says what is wrong with it.
//
//   node monitor.mjs CHROMIUM URL SCREENSHOTS LOOKED-AT OTHER
//
// Two programs run: the one that is looked at, and another that dies and comes back. Where something has to happen to them the script
// prints a line and waits for one. Screenshots go to a folder. Prints one line for each finding, and fails if there is one.
import { createInterface } from "node:readline";
import { createRequire } from "node:module";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium } from "playwright-core";

const [executablePath, url, screenshots, lookedAt, other] = process.argv.slice(2);
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const PAGES = ["vms", "threads", "heap", "map", "monitors", "allocations", "ask"];
const found = [];
const check = (holds, what) => {
  if (!holds) {
    found.push(what);
  }
};
const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
/** Has the test do something, and waits until it has. */
const please = async (what) => {
  console.log(`please ${what}`);
  await lines.next();
};

const profile = mkdtempSync(join(tmpdir(), "et-monitor-"));
const browser = await chromium.launchPersistentContext(profile, {
  executablePath,
  headless: true,
  viewport: { width: 1400, height: 1000 },
  colorScheme: "light",
  reducedMotion: "reduce",
  args: [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
  ],
});

try {
  const page = await browser.newPage();
  page.setDefaultTimeout(90_000);
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) {
      found.push(`console: ${message.text()}`);
    }
  });
  page.on("pageerror", (error) => found.push(`script: ${error.message}`));
  page.on("dialog", (dialog) => {
    found.push(`a name out of a program ran as a script: ${dialog.message()}`);
    dialog.dismiss();
  });
  page.on("request", (request) => check(request.url().startsWith(url) || request.url().startsWith("data:"), `asks for ${request.url()}`));
  await page.goto(url);

  const text = (selector) => page.locator(selector).first().innerText();
  const visit = async (id) => {
    await page.locator(`#tab-${id}`).click();
    await page.waitForTimeout(100);
  };
  const shot = (name) => page.screenshot({ path: join(screenshots, `${name}.png`) });
  const row = (program) => page.locator("#vm-table tbody tr", { hasText: program });
  const until = async (what, holds) => {
    for (const begun = Date.now(); Date.now() - begun < 90_000; ) {
      if (await holds()) {
        return true;
      }
      await page.waitForTimeout(100);
    }
    found.push(`not within 90 s: ${what}`);
    return false;
  };
  /** What axe-core finds on what is visible. Run by itself: the page's own policy lets no other script in. */
  const accessible = async (where, rules) => {
    const session = await browser.newCDPSession(page);
    await session.send("Runtime.evaluate", { expression: axe });
    const { result, exceptionDetails } = await session.send("Runtime.evaluate", {
      expression: `axe.run(document, ${rules ? JSON.stringify({ runOnly: rules }) : "{}"}).then((all) => JSON.stringify(all.violations.map((one) =>
        one.id + ": " + one.help + " (" + one.nodes.slice(0, 3).map((node) => node.target.join(" ") + " " + node.html.slice(0, 160)).join("; ") + ")")))`,
      awaitPromise: true,
      returnByValue: true,
    });
    check(!exceptionDetails, `axe-core failed on ${where}: ${exceptionDetails?.text}`);
    JSON.parse(result.value ?? "[]").forEach((violation) => found.push(`${where}: ${violation}`));
    await session.detach();
  };

  // Both programs are there; one is chosen.
  check((await page.locator('[role="tabpanel"]:visible').count()) === 1 && (await page.locator("#vm-table").isVisible()), "it does not begin with the VMs");
  await until("two VMs", async () => (await row(lookedAt).count()) === 1 && (await row(other).count()) === 1);
  await row(lookedAt).locator("button").click();
  check((await row(lookedAt).locator("button").getAttribute("aria-pressed")) === "true", "the VM that was chosen is not marked");

  // The other pages are about the one that is chosen, which can be changed on each of them; the table of all is on its own.
  await visit("threads");
  check(!(await page.locator("#vm-table").isVisible()), "the table of VMs stands above every page");
  const choice = page.locator("#vm-choice");
  check((await choice.locator("option:checked").innerText()).includes(lookedAt), "the VM that was chosen is not named");
  await choice.selectOption({ index: (await choice.locator("option").allInnerTexts()).findIndex((one) => one.includes(other)) });
  await choice.selectOption({ index: (await choice.locator("option").allInnerTexts()).findIndex((one) => one.includes(lookedAt)) });

  // Threads, and states that change before one's eyes.
  await until("threads", async () => (await page.locator("#thread-table tbody tr").count()) > 2);
  const states = () => page.locator("#thread-table .state").allInnerTexts();
  const seen = new Set();
  await until("states that change", async () => {
    seen.add((await states()).join());
    return seen.size > 2;
  });
  const painted = () => page.locator("#thread-table canvas").evaluateAll((canvases) =>
    canvases.filter((canvas) => canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data.some((byte) => byte > 0)).length);
  await until("states drawn over time", async () => (await painted()) > 2);
  const all = await page.locator("#thread-table tbody tr").count();
  await page.locator("#thread-search").fill("no such thread");
  check((await page.locator("#thread-table tbody tr").count()) === 0, "a search keeps what does not match");
  await page.locator("#thread-search").fill("main");
  const some = await page.locator("#thread-table tbody tr").count();
  check(some > 0 && some <= all, `a search for main finds ${some} of ${all}`);
  await page.locator("#thread-table tbody tr button").first().click();
  await until("a stack", async () => (await page.locator("#thread-details li").count()) > 0);
  await page.locator("#thread-search").fill("");

  // Each page by its tab: it is the only one that is seen.
  for (const id of PAGES) {
    await visit(id);
    const visible = await page.locator('[role="tabpanel"]:visible').evaluateAll((panels) => panels.map((panel) => panel.id));
    check(visible.join() === id, `tab ${id} shows ${visible.join()}`);
    await accessible(id);
  }

  // The heap over time.
  await visit("heap");
  await until("the size of the heap", async () => (await text("#heap-facts")).includes("IN USE") || (await text("#heap-facts")).includes("In use"));
  await until("a graph of the heap", async () => (await page.locator("#chart-heap canvas").count()) === 1);
  const before = await page.locator("#chart-heap .u-over").getAttribute("aria-label");
  await until("a graph that grows", async () => (await page.locator("#chart-heap .u-over").getAttribute("aria-label")) !== before);
  await shot("heap");

  // The heap as a map, by mouse and by keyboard.
  await visit("map");
  await page.locator("#walk-objects").check();
  for (const button of ["#walk-now", "#walk-gc"]) {
    const said = await text("#map-says");
    await page.locator(button).click();
    await until(`a map after ${button}`, async () => (await text("#map-says")) !== said && (await text("#map-says")).includes("in use by"));
  }
  const colours = await page.locator("#map-canvas").evaluate((canvas) => {
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    return new Set(new Uint32Array(data.buffer)).size;
  });
  check(colours > 2, `the map has ${colours} colours`);
  await page.locator("#map-canvas").focus();
  await page.keyboard.press("ArrowRight");
  const cell = await text("#map-cell");
  check(cell.startsWith("Cell 2 of"), `the arrow key leads to ${cell}`);
  await page.keyboard.press("End");
  check((await text("#map-cell")) !== cell, "the End key does nothing");
  await page.locator("#map-canvas").hover({ position: { x: 5, y: 5 } });
  check((await page.locator("#map-totals tbody tr").count()) > 2, "the legend is empty");
  await accessible("the map");
  await shot("map");

  // What threads wait for.
  await visit("monitors");
  await until("contention", async () => (await page.locator("#monitor-places tbody tr", { hasText: "Shop.serve(Shop.java:" }).count()) > 0);
  await until("the owner of a monitor", async () => (await page.locator("#monitor-places tbody tr", { hasText: /clerk-[12]/ }).count()) > 0);
  await until("events", async () => (await page.locator("#monitor-events tbody tr", { hasText: /clerk-[12].*waits to enter.*Shop\.java:\d+.*clerk-[12]/s }).count()) > 0);
  await shot("monitors");

  // What it allocates, or why that is not said.
  await visit("allocations");
  await until("allocations", async () => (await page.locator("#allocation-rows tbody tr").count()) > 0);
  for (const by of ["class", "context", "site"]) {
    await page.locator(`input[name="allocated-by"][value="${by}"]`).check();
    // A second in which the program allocates nothing has no rows: on a busy machine there are such.
    await until(`allocations by ${by}`, async () => (await page.locator("#allocation-rows tbody tr").count()) > 0);
  }
  await shot("allocations");

  // From classes to an object.
  await visit("ask");
  await page.locator("#ask-form button").click();
  await until("classes", async () => (await page.locator("#ask-answer tbody tr").count()) > 0);
  await shot("ask");
  const classes = page.locator("#ask-answer tbody button");
  if ((await classes.count()) > 0) {
    await classes.first().click();
    await until("objects or why not", async () => !(await text("#ask-answer")).includes("classes with the most bytes"));
  }
  await page.locator("#ask-what").selectOption("object");
  await page.locator("#ask-id").fill("123456789");
  await page.locator("#ask-form button").click();
  await until("why there is no answer", async () => (await page.locator("#ask-answer .alarm").count()) === 1);
  // The browser says that an answer was a failure; it was meant to be.
  const refusals = (line) => line.startsWith("console: Failed to load resource");
  const meant = found.filter(refusals);
  check(meant.length <= 2, `${meant.length} requests fail`);
  found.splice(0, found.length, ...found.filter((line) => !refusals(line)));

  // What can be done.
  await visit("heap");
  await page.locator("#gc").click();
  await until("a collection", async () => (await text("#notice")).includes("has collected"));
  await page.locator("#dump").click();
  await until("a heap dump", async () => (await text("#notice")).includes(".hprof,"));
  await visit("vms");
  // Whichever was found first is selected: the other one is chosen.
  const isSelected = await page.locator("#select").isDisabled();
  if (isSelected) {
    await row(other).locator("button").click();
  }
  await page.locator("#select").click();
  await until("another VM for debuggers", async () => (await text("#notice")).includes("Debuggers find this VM"));
  check(await page.locator("#select").isDisabled(), "what is selected can be selected again");
  await row(other).locator("button").click();

  // A VM dies and comes back.
  await please("kill");
  await until("a VM that is gone", async () => (await row(other).innerText()).includes("gone"));
  check(await page.locator("#exit").isDisabled() && await page.locator("#gc").isDisabled(), "a VM that is gone can be asked to collect garbage");
  await shot("gone");
  await please("restart");
  await until("its next run", async () => (await row(other).innerText()).includes("runs"));
  check((await row(other).count()) === 1, "its next run is another row");
  await visit("threads");
  await until("threads of its next run", async () => (await page.locator("#thread-table tbody tr").count()) > 2);
  await shot("threads");

  // In the dark, and on a small screen.
  await visit("vms");
  await row(lookedAt).locator("button").click();
  await page.emulateMedia({ colorScheme: "dark", reducedMotion: "reduce" });
  for (const id of ["vms", "threads", "heap", "map", "monitors"]) {
    await visit(id);
    if (id === "map") {
      await page.locator("#walk-now").click();
      await until("a map in the dark", async () => (await text("#map-says")).includes("in use by"));
    }
    await page.waitForTimeout(1200);
    await shot(`${id}-dark`);
    await accessible(`${id} in the dark`, ["color-contrast"]);
  }
  await page.emulateMedia({ colorScheme: "light", reducedMotion: "reduce" });
  await page.setViewportSize({ width: 420, height: 900 });
  for (const id of ["vms", "threads", "heap", "map", "monitors", "ask"]) {
    await visit(id);
    await page.waitForTimeout(250);
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
    check(wide <= 0, `${id} is ${wide} pixels wider than a small screen`);
    await shot(`${id}-small`);
  }
  await page.setViewportSize({ width: 1400, height: 1000 });

  // The end of a program takes two clicks.
  await visit("vms");
  await page.locator("#exit-status").fill("7");
  await page.locator("#exit").click();
  await page.waitForTimeout(300);
  check((await row(lookedAt).innerText()).includes("runs"), "one click ends a program");
  await page.locator("#exit").click();
  await until("its end", async () => (await row(lookedAt).innerText()).includes("gone"));
  await please("look at its exit code");

  // A monitor that is made up: no port for the selected VM, and a heap that nobody has looked at for a while.
  const pretended = await browser.newPage();
  pretended.on("pageerror", (error) => found.push(`script: ${error.message}`));
  // What is written on canvases: the numbers of axes.
  await pretended.addInitScript(() => {
    window.written = [];
    const fillText = CanvasRenderingContext2D.prototype.fillText;
    CanvasRenderingContext2D.prototype.fillText = function (text, ...rest) {
      window.written.push(String(text));
      fillText.call(this, text, ...rest);
    };
  });
  const start = 1_700_000_000_000;
  const points = [...Array(20).keys()].map((at) => [start + at * 1000, 30e6 + at * 1e6, 64 << 20, at > 0]);
  const alone = [start + 60_000, 5e6, 64 << 20, false];
  const later = points.map(([time, used, size], at) => [time + 100_000, used, size, at > 0]);
  const heap = { timeMs: start + 119_000, used: 49e6, size: 64 << 20, most: 64 << 20, objects: null, collections: 1, pausesNs: 5, parts: [], clamped: false, joined: true };
  const vm = { id: 1, pid: 5, application: "made.up", vm: "VM", here: true, gone: null, runs: 1, sinceMs: start, port: 8000, debuggerPort: 8705, debugger: false, waitsForDebugger: false, features: [], threads: 1, heap };
  const stream = [["vms", { selected: 1, selectedPort: null, vms: [vm] }], ["heap", { ...heap, history: [...points, alone, ...later] }]];
  await pretended.route("**/api/events*", (route) => route.fulfill({
    contentType: "text/event-stream",
    body: stream.map(([event, data]) => `retry: 600000\nevent: ${event}\ndata: ${JSON.stringify(data)}\n\n`).join(""),
  }));
  await pretended.goto(url);
  await pretended.locator("#vm-table tbody tr").waitFor();
  const cells = await pretended.locator("#vm-table tbody tr td").allInnerTexts();
  check(cells.includes("port 8705"), `its ports are ${cells.join("; ")}`);
  check(!(await pretended.locator("#select").isVisible()), "a port that is not there is offered");
  await pretended.locator("#tab-heap").click();
  await pretended.locator("#chart-heap canvas").waitFor();
  await pretended.waitForTimeout(300);
  const labels = (await pretended.evaluate(() => window.written)).filter((text) => text.endsWith("iB"));
  check(labels.length > 2 && labels.every((text) => /^\d+(\.0)? [KMG]iB$/.test(text)), `an axis has ${labels.join(", ")}`);
  const inks = await pretended.locator("#chart-heap canvas").evaluate((canvas, colour) => {
    const { data, width, height } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    const is = (at) => [0, 1, 2].every((part) => Math.abs(data[at + part] - colour[part]) < 40) && data[at + 3] > 200;
    const has = (column) => [...Array(height).keys()].some((row) => is((row * width + column) * 4));
    return [...Array(width).keys()].map(has);
  }, await pretended.evaluate(() => {
    const text = getComputedStyle(document.documentElement).getPropertyValue("--live").trim();
    return [1, 3, 5].map((at) => parseInt(text.slice(at, at + 2), 16));
  }));
  const drawn = inks.indexOf(true), over = inks.lastIndexOf(true), middle = (part) => Math.round(drawn + (over - drawn) * part);
  const between = (from, to) => inks.slice(middle(from), middle(to)).filter(Boolean).length;
  check(between(0.02, 0.15) > 10 && between(0.86, 0.98) > 10, "no line where somebody looked");
  check(between(0.2, 0.48) === 0 && between(0.54, 0.8) === 0, "a line where nobody looked");
  check(between(0.48, 0.54) > 0, "the size at a collection is not drawn");
  await pretended.close();

  // Without the token there is nothing.
  const answer = await page.context().request.get(new URL("/", url).href + "0123456789abcdef0123456789abcdef/api/vms");
  check(answer.status() === 403, `another token gets ${answer.status()}`);
} catch (error) {
  found.push(`broke off: ${error.message}`);
} finally {
  await browser.close();
  rmSync(profile, { recursive: true, force: true });
}
found.forEach((line) => console.log(line));
console.log(`${found.length} findings`);
process.exit(found.length === 0 ? 0 : 1);
