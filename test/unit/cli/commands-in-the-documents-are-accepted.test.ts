/**
 * Every command in the documents' examples is accepted by the command line as it is written: misuse would be exit
 * status 2.
 */
import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import test from "node:test";
import { run, startGateway } from "./captured-run.ts";

/** These have tests of their own: they serve, or write into the current folder. */
const ELSEWHERE = /^(init|serve|simulator)\b/;

/** Commands in code blocks, with their document, without comments. */
function commands(): { readonly document: string; readonly words: readonly string[] }[] {
  return ["README.md", "CONTRIBUTING.md", ...globSync("docs/**/*.md")].sort().flatMap((document) => {
    const blocks = readFileSync(document, "utf8").matchAll(/^```(?:sh|bash)?\n([\s\S]*?)^```$/gm);
    const lines = [...blocks].flatMap(([, text]) => (text as string).split("\n"));
    const named = lines.map((line) => /^\s*(?:npx --no-install )?tollgate ([^#]*)/.exec(line)?.[1]?.trim());
    return named
      .filter((text) => text !== undefined)
      .map((text) => ({ document, words: text.replaceAll("'", "").split(/\s+/) }));
  });
}

test("the command line accepts every command that a document shows", async () => {
  const shown = commands();
  assert.ok(shown.length > 25, `${shown.length} commands`);
  const refused: string[] = [];
  for (const { document, words } of shown) {
    if (ELSEWHERE.test(words.join(" "))) continue;
    const away = () => Promise.reject(new Error("no gateway here"));
    const { status, err } = await run(words, { fetch: away, check: () => Promise.resolve(0) });
    // An example's file does not exist here, which is found after the arguments have been accepted.
    if (status === 2 && !/^The file \S+ does not exist/.test(err))
      refused.push(`${document}: tollgate ${words.join(" ")}: ${err}`);
  }
  assert.deepEqual(refused, []);
});

test("the first commands of docs/money.md can be typed from top to bottom", async (t) => {
  const invitation = { lastsMs: 60_000, consoleUrl: () => "http://127.0.0.1:8787/console" };
  const { tollgate } = await startGateway(t, { invitation });
  const [, block = ""] = /^```sh\n([\s\S]*?)^```$/m.exec(readFileSync("docs/money.md", "utf8")) ?? [];
  const lines = block.trimEnd().split("\n");
  assert.ok(lines.length > 15, block);
  const keys: string[] = [];
  for (const line of lines) {
    const typed = /^npx --no-install tollgate ([^#]*)/.exec(line)?.[1]?.trim() ?? assert.fail(line);
    // These tests use another group, and the document's date will be in the past.
    const named = typed
      .replace("LAPTOP_KEY_ID", keys[1] ?? "")
      .replace("KEY_ID", keys[0] ?? "")
      .replace("default", "big")
      .replace(/\b20\d\d-/, "2099-");
    const { status, out, err } = await tollgate(...named.split(/\s+/));
    assert.equal(status, 0, `${line}: ${err}`);
    if (/^key create/.test(typed)) keys.push(/key_[0-9A-Za-z]{18}/.exec(out)?.[0] ?? assert.fail(out));
  }
});
