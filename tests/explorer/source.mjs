// Lines of source at the sites of a served trace: in each view, with those around them when one clicks.
//
//   node source.mjs URL SCREENSHOTS CHROMIUM
//
// The traced program is tests/java/explorer/Service.java, and the explorer knows where that is.
import { look } from "./look.mjs";

/** What makes the sessions that leak. */
const LINE = "SESSIONS.put(customer, new Session(customer));";

await look(async ({ page, check, shot, accessible, go }) => {
  page.on("console", (message) => check(message.type() !== "error", `console: ${message.text()}`));
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

  // The dominator tree: beside the object, as in the list; also below one that is opened.
  const dominators = await go(`view=dominators`);
  // The class, its map, the map's array, an entry.
  for (const depth of [0, 1, 2, 3]) {
    await dominators.locator(`tr[data-depth="${depth}"] button[aria-expanded=false]`).first().click();
    await dominators.locator(`tr[data-depth="${depth + 1}"]`).first().waitFor();
  }
  await dominators.locator(".source-of code", { hasText: LINE }).first().waitFor();
  await shot("source-dominators");

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
});
