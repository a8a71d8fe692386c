/**
 * Each `test/golden/requests/<from>/<case>.json` is a client's body with the capabilities of the route. Next to it is
 * one `<case>.<to>.expected.json` per target: the upstream's body, or the refusal. The numbers in the names only keep
 * them in order. UPDATE_GOLDENS=1 rewrites the expected files; review their diff.
 */
import assert from "node:assert/strict";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import test from "node:test";
import type { Capabilities } from "../../../../src/values/catalog.ts";
import { isRefusal } from "../../../../src/values/errors.ts";
import { PROTOCOL_NAMES, type Protocol } from "../../../../src/values/protocol.ts";
import { type Body, routeTo, translate } from "./translate.ts";

const GOLDENS = new URL("../../../golden/requests/", import.meta.url);

interface GoldenCase {
  readonly title: string;
  readonly capabilities?: Partial<Capabilities>;
  readonly body: Body;
}

for (const from of PROTOCOL_NAMES) {
  const files = readdirSync(new URL(`${from}/`, GOLDENS));
  for (const file of files.filter((name) => name.endsWith(".expected.json"))) {
    const [name, to] = file.split(".") as [string, Protocol, ...string[]];
    const golden: GoldenCase = read(`${from}/${name}.json`);
    test(`case ${name}, ${from} to ${to}: ${golden.title}`, () => {
      const actual = outcome(from, golden, to);
      if (process.env.UPDATE_GOLDENS) write(`${from}/${file}`, actual);
      assert.deepEqual(actual, read(`${from}/${file}`));
    });
  }
}

/** What a golden expects: the body and what the translation of the reply gets, or the refusal. */
function outcome(from: Protocol, golden: GoldenCase, to: Protocol): unknown {
  const encoded = translate(from, golden.body, routeTo(to, golden.capabilities));
  if (isRefusal(encoded)) return { refused: encoded.cause, param: encoded.facts.param };
  const expected: Record<string, unknown> = { body: JSON.parse(new TextDecoder().decode(encoded.body)) };
  if (encoded.dropped.length > 0) expected.dropped = encoded.dropped;
  if (encoded.plan.emulateStop.length > 0) expected.emulateStop = encoded.plan.emulateStop;
  const renamed = [...encoded.plan.tools].filter(([name, tool]) => tool.name !== name || tool.kind !== "function");
  if (renamed.length > 0) expected.restore = JSON.parse(JSON.stringify(Object.fromEntries(renamed)));
  return expected;
}

function read<T>(path: string): T {
  return JSON.parse(readFileSync(new URL(path, GOLDENS), "utf8"));
}

function write(path: string, value: unknown): void {
  writeFileSync(new URL(path, GOLDENS), `${JSON.stringify(value, null, 2)}\n`);
}
