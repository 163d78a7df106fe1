// Finds two leaks and a mistake in how objects are handed on, by clicking: from the first page to the line that stored the reference.
//
//   node leak.mjs URL SCREENSHOTS CHROMIUM
//
// The traced program is tests/java/explorer/Service.java. Prints one line for each step that does not lead on, and fails if there is one.
import { look } from "./look.mjs";

await look(async ({ page, url, shot }) => {
  const at = (view) => page.waitForFunction((id) => {
    const seen = [...document.querySelectorAll('[role="tabpanel"]')].filter((panel) => !panel.hidden);
    return seen.length === 1 && seen[0].id === `view-${id}` && document.getElementById("views").getAttribute("aria-busy") === "false";
  }, view);
  const has = async (view, words, what) => {
    const text = (await page.locator(`#view-${view} .answer`).innerText()).replaceAll("\u200b", "");
    for (const word of words) {
      if (!text.includes(word)) {
        throw new Error(`${what}: the view ${view} has no "${word}":\n${text.slice(0, 2000)}`);
      }
    }
  };
  /** From the groups to the objects of a class, and to the first of them. */
  const objectOf = async (name) => {
    await page.locator("#tab-groups").click();
    await at("groups");
    const row = page.locator("#view-groups tbody tr", { hasText: new RegExp(`${name.replaceAll("$", "\\$")}(?!\\[)`) }).first();
    await row.locator("a").first().click();
    await at("objects");
    await page.locator("#view-objects [role=row] a, #view-objects tbody a").first().click();
    await at("object");
    // Its life in words, and its stack.
    await page.locator("#view-object details").evaluateAll((all) => all.forEach((one) => { one.open = true; }));
  };

  await page.goto(url);
  await at("findings");
  await has("findings", ["Service.SESSIONS", "Service.LISTENERS"], "both leaks are on the first page");
  await shot("leak-1-findings", { fullPage: true });

  // The first leak: from the finding to what holds more and more, and up to the static field.
  await page.locator(".finding", { hasText: "SESSIONS" }).first().locator("a", { hasText: /^The object$/ }).click();
  await at("object");
  await has("object", ["static field Service.SESSIONS"], "the path of what holds the sessions");
  await shot("leak-2-holder", { fullPage: true });

  // What it holds, and who put one of them there.
  await objectOf("Service$Session");
  await has("object", ["Service.open", "HashMap$Node.value", "static field Service.SESSIONS", "stored into java.util.HashMap$Node.value"], "a session");
  await shot("leak-3-session", { fullPage: true });

  // The second leak, from a class to the line.
  await page.goBack();
  await objectOf("Service$Listener");
  await has("object", ["Service.subscribe", "static field Service.LISTENERS", "ArrayList.add"], "a listener");
  await shot("leak-4-listener", { fullPage: true });

  // What is handed on: a request that another thread keeps.
  await page.goBack();
  await objectOf("Service$Request");
  await has("object", ["Service.main", "auditor", "Service$Auditor.keepForRetry", "first stored by auditor"], "a request");
  await shot("leak-5-request", { fullPage: true });
  // Its life leads to the moment at which the auditor stored it.
  await page.locator("#view-object .life-words li", { hasText: "keepForRetry" }).locator("a").first().click();
  await at("object");
  await has("object", ["Service$Auditor.keepForRetry"], "the moment at which it was kept");
  // What grew between two moments, by class.
  await page.locator("#tab-changes").click();
  await at("changes");
  await has("changes", ["Service$Session", "Service$Listener", "Service$Request"], "what came");
  await shot("leak-6-changes", { fullPage: true });
});
