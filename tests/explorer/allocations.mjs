// Looks at a trace without calls and deaths: what was made can be seen, and the page says how to have the rest.
//
//   node allocations.mjs URL SCREENSHOTS CHROMIUM
//
// The traced program is tests/java/explorer/Service.java.
import { look } from "./look.mjs";

await look(async ({ page, url, check, shot, shown }) => {
  const tab = async (view) => {
    await page.locator(`#tab-${view}`).click();
    await shown(view);
  };
  const answer = (view) => page.locator(`#view-${view} .answer`).innerText();

  await page.goto(url);
  await shown("findings");
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
  check((await page.locator("#view-objects .foot").innerText()).includes("--born tick:"), await page.locator("#view-objects .foot").innerText());
  await tab("flame");
  check((await page.locator("#view-flame g.frame").count()) > 3, "the flame graph is empty");
  await shot("allocations");
  // What takes more says so.
  for (const view of ["dominators", "treemap", "changes"]) {
    await tab(view);
    check((await answer(view)).includes("Instrument with --events all"), `${view}: ${await answer(view)}`);
  }
  await tab("findings");
  check((await page.locator("#view-findings .failure").count()) === 0, await answer("findings"));
});
