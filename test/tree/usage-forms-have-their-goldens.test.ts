/**
 * docs/usage-forms.md and test/golden/usage agree: each row has a golden, each golden a row, and each row its source.
 */
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import test from "node:test";

const PROTOCOLS: Readonly<Record<string, string>> = {
  "Chat completions": "chat",
  Messages: "messages",
  Responses: "responses",
};
const GOLDENS = new URL("../golden/usage/", import.meta.url);

interface Row {
  readonly name: string;
  readonly protocol: string | undefined;
  readonly cells: readonly string[];
}

function rows(): readonly Row[] {
  const found: Row[] = [];
  let protocol: string | undefined;
  for (const line of readFileSync("docs/usage-forms.md", "utf8").split("\n")) {
    if (line.startsWith("## ")) protocol = PROTOCOLS[line.slice(3)];
    const cells = line.split(" | ").map((cell) => cell.replace(/^\| | \|$/g, "").trim());
    const name = /^`([a-z0-9-]+)`$/.exec(cells[0] ?? "")?.[1];
    if (name !== undefined) found.push({ name, protocol, cells });
  }
  return found;
}

const goldens = readdirSync(GOLDENS).map((file) => file.replace(/\.json$/, ""));
const golden = (name: string) => JSON.parse(readFileSync(new URL(`${name}.json`, GOLDENS), "utf8"));

test("each row has exactly one golden, and each golden exactly one row", () => {
  const names = rows().map(({ name }) => name);
  assert.ok(names.length > 50, `${names.length} rows`);
  assert.deepEqual([...names].sort(), goldens.sort());
});

test("each row names its source and date, and is under its protocol", () => {
  for (const { name, protocol, cells } of rows()) {
    assert.equal(cells.length, 6, name);
    for (const cell of cells) assert.notEqual(cell, "", name);
    assert.match(cells[4] ?? "", /^<https:\/\/[^>]+>(, <https:\/\/[^>]+>)*$/, name);
    assert.match(cells[5] ?? "", /^(read )?20\d\d-[01]\d-[0-3]\d$/, name);
    assert.equal(golden(name).protocol, protocol, name);
  }
});

test("each golden has a body or a stream, and expects whole numbers of tokens and a charge", () => {
  for (const name of goldens) {
    const { whole, stream, tokens, counted, nano_usd } = golden(name);
    assert.ok(whole || stream, name);
    assert.match(nano_usd, /^[1-9]\d*$/, name);
    assert.ok(counted === "upstream" || counted === "estimate", name);
    const kinds = ["input", "cached_input", "cache_write", "cache_write_1h", "output", "reasoning"];
    assert.deepEqual(Object.keys(tokens), kinds, name);
    for (const count of Object.values(tokens)) assert.ok(Number.isSafeInteger(count) && (count as number) >= 0, name);
  }
});
