// Gives profiles to the tools they are made for, and compares what these understand with what was written.
//
//   node consume.mjs CHROMIUM FOLDER
//
// FOLDER has p.pprof, p.speedscope, p.chrome and p.collapsed, weighted by objects, and expected.json: {"total": …, "kept": …}, the
// objects in all and those of class Lives$Kept.

import assert from "node:assert/strict";
import fs from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { gunzipSync } from "node:zlib";
import Ajv from "ajv";
import { chromium } from "playwright-core";
import { Profile } from "pprof-format";

const [browserPath, folder] = process.argv.slice(2);
const read = (name) => fs.readFileSync(path.join(folder, name));
const expected = JSON.parse(read("expected.json"));
const require = createRequire(import.meta.url);
const speedscope = path.join(path.dirname(require.resolve("speedscope/package.json")), "dist", "release");

// pprof: another implementation of the format than ours.
{
  const profile = Profile.decode(gunzipSync(read("p.pprof")));
  const text = (index) => profile.stringTable.strings[Number(index)];
  const types = profile.sampleType.map((type) => text(type.type));
  const objects = types.indexOf("alloc_objects");
  const functions = new Map(profile.function.map((one) => [Number(one.id), one]));
  const locations = new Map(profile.location.map((one) => [Number(one.id), one]));
  const frames = (sample) =>
    sample.locationId.map((id) => {
      const line = locations.get(Number(id)).line[0];
      return { name: text(functions.get(Number(line.functionId)).name), line: Number(line.line) };
    });
  let total = 0;
  let kept = 0;
  for (const sample of profile.sample) {
    const weight = Number(sample.value[objects]);
    total += weight;
    const [leaf, allocates, caller] = frames(sample);
    if (leaf.name === "Lives$Kept") {
      kept += weight;
      assert.equal(allocates.name, "Lives.keep");
      assert.ok(allocates.line > 0, "the frame that allocates has a line");
      assert.equal(caller.name, "Lives.main");
    }
  }
  assert.deepEqual({ total, kept }, expected);
}

// speedscope's own schema.
{
  const schema = JSON.parse(fs.readFileSync(path.join(speedscope, "file-format-schema.json")));
  const ajv = new Ajv({ strict: false });
  const valid = ajv.compile(schema);
  assert.ok(valid(JSON.parse(read("p.speedscope"))), JSON.stringify(valid.errors));
}

// speedscope itself reads all four. Its sandwich view is a table of functions with their own and total weights.
const browser = await chromium.launch({
  executablePath: browserPath,
  args: ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
});
try {
  for (const [file, name] of [
    ["p.speedscope", "p.speedscope.json"],
    ["p.pprof", "p.pb.gz"],
    ["p.chrome", "p.heapprofile"],
    ["p.collapsed", "p.txt"],
  ]) {
    const script = path.join(folder, `${file}.js`);
    const body = read(file).toString("base64");
    fs.writeFileSync(script, `speedscope.loadFileFromBase64(${JSON.stringify(name)}, ${JSON.stringify(body)})`);
    const page = await browser.newPage();
    const errors = [];
    page.on("pageerror", (error) => errors.push(String(error)));
    await page.goto(`${pathToFileURL(path.join(speedscope, "index.html"))}#localProfilePath=${script}`);
    await page.getByText("Sandwich").click({ timeout: 20000 });
    // Sorted by own weight; only what is in view is there.
    const row = page.getByRole("row").filter({ hasText: "Lives$Kept" }).first();
    await row.waitFor({ timeout: 20000 });
    const share = `${Math.round((expected.kept / expected.total) * 100)}%`;
    const shown = await row.innerText();
    assert.ok(shown.includes(file === "p.chrome" ? "1.95 KB" : expected.kept.toLocaleString("en")), `${file}: ${shown}`);
    assert.ok(shown.includes(share), `${file}: ${shown} is not ${share}`);
    assert.deepEqual(errors, [], `${file} in speedscope`);
    await page.close();
  }
} finally {
  await browser.close();
}
console.log("pprof-format, ajv and speedscope agree");
