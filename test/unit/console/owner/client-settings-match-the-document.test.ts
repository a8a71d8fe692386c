/** The settings on the page of a new key are those of docs/clients.md, filled in. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { clientSettings } from "../../../../src/console/pages/owner/keys/clients.ts";

const DOCUMENT = readFileSync(new URL("../../../../docs/clients.md", import.meta.url), "utf8");
/** What the pages show in addition: how the key gets into the environment, how a program reads it, curl. */
const OWN = /^(?:export TOLLGATE_KEY=|const apiKey = |key = os\.environ|curl | {2}-[Hd] )/;

const bare = (line: string) =>
  line
    .replace(/\s*(?:\/\/|#) .*$/, "")
    .replace(/#.*$/, "")
    .trim();

test("each line is in the document", () => {
  const documented = new Set(DOCUMENT.split("\n").map(bare));
  const settings = clientSettings({ address: "https://your.host", key: "sk-…", model: "big-1" });
  const lines = settings.flatMap(({ files }) => files.flatMap(({ text }) => text.split("\n")));
  const unknown = lines.filter((line) => !OWN.test(line) && !documented.has(bare(line)));
  assert.deepEqual(unknown, []);
  assert.ok(lines.length > 30, `${lines.length} lines`);
});

test("every client with settings in the document is included", () => {
  const shown = new Set(clientSettings({ address: "a", key: "k", model: "m" }).map(({ name }) => name));
  const headings = [...DOCUMENT.matchAll(/^## (.*)\n[\s\S]*?(?=^## |$(?![\s\S]))/gm)];
  const withSettings = headings.filter(([text]) => text.includes("your.host") && text.includes("```"));
  assert.deepEqual(
    withSettings.map(([, name = ""]) => name).filter((name) => name !== "Official SDKs" && !shown.has(name)),
    [],
  );
  assert.ok(shown.has("OpenAI SDK") && shown.has("Anthropic SDK"));
});

test("the settings of each client contain the key and the model", () => {
  for (const { name, files } of clientSettings({ address: "https://a.example", key: "sk-canary", model: "model-7" })) {
    const text = files.map((file) => file.text).join("\n");
    assert.ok(text.includes("sk-canary") && text.includes("https://a.example"), name);
    assert.ok(!text.includes("your.host") && !text.includes("big-1"), name);
  }
});
