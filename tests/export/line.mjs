// Says whether a profile for pprof has a function that is at a line, as another implementation of the format reads it.
//
//   node line.mjs PROFILE FUNCTION LINE
//
// The function must be above another in some stack: it calls there.

import assert from "node:assert/strict";
import fs from "node:fs";
import { gunzipSync } from "node:zlib";
import { Profile } from "pprof-format";

const [file, name, line] = process.argv.slice(2);
const profile = Profile.decode(gunzipSync(fs.readFileSync(file)));
const text = (index) => profile.stringTable.strings[Number(index)];
const functions = new Map(profile.function.map((one) => [Number(one.id), one]));
const lines = new Map(profile.location.map((one) => [Number(one.id), one.line[0]]));
const isAt = (id) => {
  const at = lines.get(Number(id));
  return text(functions.get(Number(at.functionId)).name) === name && Number(at.line) === Number(line);
};
const callers = profile.sample.flatMap((sample) => [...sample.locationId].slice(1));
assert.ok(callers.some(isAt), `no call of ${name} at line ${line}`);
const source = text(functions.get(Number(lines.get(Number(callers.find(isAt))).functionId)).filename);
assert.ok(source.endsWith(`${name.split(".")[0]}.java`), `${name} is in ${source}`);
