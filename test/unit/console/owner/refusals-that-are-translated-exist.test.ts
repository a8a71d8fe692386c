/** The Chinese texts of refusals belong to codes that the gateway has, and cover those that owners meet most. */
import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import test from "node:test";
import { refusals as english } from "../../../../src/console/pages/texts/en/refusals.ts";
import { refusals } from "../../../../src/console/pages/texts/zh/refusals.ts";

const SOURCES = globSync("src/console/**/*.ts").filter((file) => !file.includes("/pages/"));
/** `suggest.ts` builds these from the word for the unknown thing. */
const MADE = ["unknown_plan", "unknown_group", "unknown_card"];
const CODES = new Set([
  ...MADE,
  ...SOURCES.flatMap((file) => [...readFileSync(file, "utf8").matchAll(/"([a-z_]+)"/g)].map(([, word]) => word)),
]);

test("each code is one of the gateway's", () => {
  assert.deepEqual(
    Object.keys(refusals).filter((code) => !CODES.has(code)),
    [],
  );
  assert.deepEqual(english, {});
});

test("each refusal of the routes with which owners write has a text", () => {
  const met = SOURCES.filter((file) => /routes\/(?:keys|limits|codes)\.ts$/.test(file)).flatMap((file) =>
    [...readFileSync(file, "utf8").matchAll(/new AdminRefusal\(\s*\d+,\s*"([a-z_]+)"/g)].map(([, code = ""]) => code),
  );
  const operators = new Set(["unknown_code", "code_used", "codes_exist"]);
  assert.ok(met.length >= 8, `${met}`);
  assert.deepEqual(
    met.filter((code) => refusals[code] === undefined && !operators.has(code)),
    [],
  );
});

test("each refusal of the operator's sign-in has a text with its remedy", () => {
  const met = ["admin_token_required", "wrong_token", "too_many_wrong_tokens"];
  assert.deepEqual(
    met.filter((code) => refusals[code]?.[1] === undefined),
    [],
  );
});
