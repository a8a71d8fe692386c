import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import fc from "fast-check";
import { loadConfig } from "../../../src/config/config.ts";

const example = readFileSync(new URL("../../../tollgate.example.yaml", import.meta.url), "utf8");
const ENV = {
  TOLLGATE_ADMIN_TOKEN: "admin-token-0123456789",
  TOLLGATE_SEALING_KEY: "0123456789abcdef0123456789abcdef",
  EAST_KEY: "east-credential",
  WEST_KEY: "west-credential",
  TOLLGATE_WEBHOOK_SECRET: `whsec_${Buffer.alloc(32, "w").toString("base64")}`,
};

/** Whether the result is settings, or problems with positions inside the file. Fails if loading throws. */
function answers(text: string): boolean {
  const loaded = loadConfig({ text, env: ENV, readFile: () => "text" });
  if ("settings" in loaded) return true;
  const lines = text.split("\n").length;
  assert.ok(loaded.problems.length > 0);
  return loaded.problems.every((problem) => problem.line >= 1 && problem.line <= lines && problem.column >= 1);
}

test("any text results in settings or in problems", () => {
  const scrap = fc.constantFrom(..."[]{}:,-&*!|>'\"#%@`$\n\t ~?abc019.", "$" + "{A}", "<<", "__proto__", "file:/x");
  fc.assert(fc.property(fc.array(scrap, { maxLength: 60 }), (scraps) => answers(scraps.join(""))));
  fc.assert(fc.property(fc.string({ unit: "binary" }), answers));
});

test("the example with any piece replaced results in settings or in problems", () => {
  const piece = fc.constantFrom("", "null", "[]", "{}", "1.5", "-1", "x: y", "\n", ": ", "*a", "$" + "{B}", "file:/x");
  const places = fc.tuple(fc.nat(example.length), fc.nat(40), piece);
  fc.assert(
    fc.property(places, ([at, length, text]) => answers(example.slice(0, at) + text + example.slice(at + length))),
    { numRuns: 300 },
  );
});
