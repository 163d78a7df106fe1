// SQL on the tables of a served trace: a query that comes along, one that is typed, what is wrong told, an id that leads to its object.
//
//   node sql.mjs URL SCREENSHOTS CHROMIUM
//
// The traced program is tests/java/explorer/Service.java, and the explorer knows its tables.
import { look } from "./look.mjs";

await look(async ({ page, check, shot, accessible, shown, go }) => {
  const view = await go("view=sql");
  const text = view.locator("textarea");
  const answer = view.locator(".answer");
  const cells = (at) => answer.locator(`tbody tr[data-index] :nth-child(${at})`).allInnerTexts();
  await accessible("no query yet");

  // A query that comes along says what it answers, and can be changed before it is run.
  await view.locator("select").selectOption("top_sites");
  check((await text.inputValue()).includes("select"), `the query is ${await text.inputValue()}`);
  await view.locator("button.run").click();
  await answer.locator("tbody tr[data-index]").first().waitFor();
  check(/^\d+ rows\./.test(await answer.innerText()), `it says ${(await answer.innerText()).slice(0, 80)}`);
  check((await view.locator(".foot code").innerText()).startsWith("et-trace sql "), await view.locator(".foot").innerText());
  await shot("sql");
  await accessible("an answer");

  // By keyboard; an id leads to its object, and back leads to the answer.
  await text.fill("select o.object, c.name, o.size from objects o join classes c using (run, class) where c.name = 'Service$Session' order by o.birth_bytes; -- the first ones");
  await text.press("Control+Enter");
  await answer.locator("a").first().waitFor();
  check((await cells(2)).every((name) => name === "Service$Session"), `classes: ${await cells(2)}`);
  const id = (await cells(1))[0];
  await answer.locator("a").first().click();
  await shown("object");
  const object = await page.locator("#view-object").innerText();
  check(object.includes(id) && object.includes("Service$Session"), `object ${id}: ${object.slice(0, 200)}`);
  await page.goBack();
  await shown("sql");
  check((await cells(1))[0] === id, `after going back the first is ${(await cells(1))[0]}, not ${id}`);

  // The answer has a link of its own.
  const link = page.url();
  await page.reload();
  await shown("sql");
  check(page.url() === link && (await cells(1))[0] === id, "the link does not lead to the answer");

  // More rows than are read.
  await text.fill("select * from range(20000)");
  await text.press("Control+Enter");
  await page.waitForFunction(() => document.querySelector("#view-sql .answer").innerText.startsWith("The first 10,000 rows"));

  // What is wrong is told, and nothing but the tables is reached.
  for (const [statement, expected] of [
    ["select nothing from objects", /nothing/],
    ["select * from read_text('/etc/hostname')", /access|permission/i],
    ["copy (select 1) to '/tmp/et-sql-box'", /syntax|parser/i],
  ]) {
    await text.fill(statement);
    await text.press("Control+Enter");
    await answer.locator(".failure").filter({ hasText: expected }).waitFor();
  }
  await shot("sql-failure");
  await page.emulateMedia({ colorScheme: "dark" });
  await page.setViewportSize({ width: 500, height: 900 });
  await go("view=sql&sql=select+*+from+threads");
  await answer.locator("tbody tr[data-index]").first().waitFor();
  await shot("sql-narrow-dark");
  await accessible("narrow, dark");
});
