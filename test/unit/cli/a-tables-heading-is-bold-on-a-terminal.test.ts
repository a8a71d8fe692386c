import assert from "node:assert/strict";
import test from "node:test";
import { run, startGateway } from "./captured-run.ts";

test("the heading of a table is bold on a terminal, also with numbers in it, and no other line is", async (t) => {
  const upstream = { name: "EAST", health: "healthy", reason: null, rest_seconds: 0, in_flight: 0, max_concurrency: 9 };
  const outcomes = { ok: 1, local: 0, remote: 0, rate_limited: 0, forbidden: 0, not_found: 0 };
  const items = [{ ...upstream, queued: 0, outcomes, limited_models: [] }];
  const { env, tollgate } = await startGateway(t);
  await tollgate("account", "create", "ALICE");
  const shown = async (argv: readonly string[], ask: typeof fetch) => {
    let out = "";
    await run(argv, { env, fetch: ask, stdout: { write: (text) => (out += text), isTTY: true } });
    return out.split("\n").filter((line) => line.includes("\u001b[1m"));
  };
  const headings = [
    await shown(["upstreams"], (async () => Response.json({ items })) as typeof fetch),
    await shown(["account", "list"], fetch),
    await shown(["usage"], fetch),
  ];
  const titles = [/^.\[1mUPSTREAM .* 429 .* 404\/405.\[22m$/, /^.\[1mNAME +PLAN .*.\[22m$/, /^.\[1mACCOUNT .*.\[22m$/];
  for (const [at, lines] of headings.entries()) {
    assert.equal(lines.length, 1, lines.join("\n"));
    assert.match(lines[0] ?? "", titles[at] as RegExp);
  }
});
