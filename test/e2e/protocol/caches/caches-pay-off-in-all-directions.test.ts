/**
 * How much input is read from the vendor's cache in an agent's session: through a translation nearly as much as
 * directly, by the caches' published rules. The figures in docs/prompt-caches.md come from this test (UPDATE_GOLDENS=1
 * writes them).
 */
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import test, { after, before } from "node:test";
import type { Protocol } from "../../../../src/values/protocol.ts";
import { type Kind, type Measured, PROTOCOL_LIST, type Setting, startSetting } from "./measure.ts";
import type { Json } from "./vendor.ts";

const PAGE = new URL("../../../../docs/prompt-caches.md", import.meta.url);

/** The minimum share of the direct session's cache reads that a translated session reaches. */
const PART_MIN = 0.99;

/** The tables of the page, in its order. */
const KINDS = ["recorded", "scripted"] as const satisfies readonly Kind[];

const rows: Record<Kind, string[]> = { scripted: [], recorded: [] };
const percent = (share: number) => `${(share * 100).toFixed(1)} %`;

let setting: Setting;
const straight = new Map<string, Measured>();
before(async () => {
  setting = await startSetting();
  for (const kind of KINDS) {
    for (const protocol of PROTOCOL_LIST) straight.set(`${kind} ${protocol}`, await setting.straight(protocol, kind));
  }
});
after(() => setting.close());

for (const kind of KINDS) {
  for (const upstream of PROTOCOL_LIST) {
    for (const client of PROTOCOL_LIST) {
      if (client === upstream) continue;
      test(`${kind}: ${client} clients on ${upstream} servers read as much from the cache as its own clients do`, async () => {
        const own = straight.get(`${kind} ${upstream}`);
        assert.ok(own && own.share > 0.9, `same protocol: ${own?.share}`);
        const without = await setting.through(client, upstream, "client", kind);
        const added = await setting.through(client, upstream, "auto", kind);
        assert.ok(added.share >= own.share * PART_MIN, `${added.share} of ${own.share}`);
        assert.equal(added.toldShare, added.share, "the reported share is the counted share");
        rows[kind].push(row(client, upstream, own, without, added));
        if (upstream === "messages") assertBreakpoints(added.bodies, without);
        else if (client === "messages") assertKeys(added.bodies, without);
        else assert.equal(added.share, without.share, "these clients send cache keys themselves");
      });
    }
  }
}

test("docs/prompt-caches.md has the measured figures", () => {
  const tables = KINDS.map((kind) => rows[kind].sort().join("\n"));
  for (const kind of KINDS) assert.equal(rows[kind].length, 6, `${kind}: all directions have been measured`);
  const page = readFileSync(PAGE, "utf8");
  let nth = 0;
  const written = page.replace(/(?<=\n\| --- \|.*\n)(\| \w+ \| \w+ \| [\d.]+ %.*\n)+/g, () => `${tables[nth++]}\n`);
  if (process.env.UPDATE_GOLDENS) writeFileSync(PAGE, written);
  assert.equal(nth, KINDS.length);
  assert.equal(readFileSync(PAGE, "utf8"), written, "UPDATE_GOLDENS=1 writes the figures");
});

function row(client: Protocol, upstream: Protocol, own: Measured, without: Measured, added: Measured): string {
  const shares = [own, without, added].map(({ share }) => percent(share));
  return `| ${client} | ${upstream} | ${shares.join(" | ")} |`;
}

/** Without breakpoints a messages server caches nothing. */
function assertBreakpoints(bodies: readonly Json[], without: Measured): void {
  assert.equal(without.read, 0);
  const marks = bodies.map((body) => JSON.stringify(body).split('"cache_control"').length - 1);
  assert.ok(
    marks.every((count) => count >= 3 && count <= 4),
    marks.join(),
  );
}

/** Without keys the three sessions of one agent share a prefix, and so machines, which are too few for them. */
function assertKeys(bodies: readonly Json[], without: Measured): void {
  assert.ok(without.share < 0.9, String(without.share));
  const keys = new Set(bodies.map(({ prompt_cache_key }) => prompt_cache_key));
  assert.equal(keys.size, 3, "each session has one key for all of its requests");
}
