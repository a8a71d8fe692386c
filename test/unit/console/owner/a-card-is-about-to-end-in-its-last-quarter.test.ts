/** The overview warns that a card ends: a day before its end, but for a short card only when little of its time is left. */
import assert from "node:assert/strict";
import test from "node:test";
import { startOwners } from "../sign-in/owners.ts";

const HOUR_MS = 3_600_000;

test("a card is about to end in its last day, or if it is short, in its last quarter", async (t) => {
  const { store, clock, account, link, browser: open } = await startOwners(t);
  const tag = await account("alice");
  for (const [card, hours] of [
    ["hour", 1],
    ["day", 24],
    ["week", 168],
  ] as const) {
    const kept = { id: card, card, plan: "pro", group: card, afterPrevious: false, reference: card, quota: undefined };
    await store.grant(tag, { ...kept, lastsMs: hours * HOUR_MS });
  }
  const ending = async () => {
    // A session of hours before has ended.
    const browser = open();
    assert.equal((await browser.post("/sign-in/link", { token: await link(tag) })).status, 200);
    return (await browser.get("/overview")).json.warnings
      .filter(({ kind }: { kind: string }) => kind === "card_end")
      .map(({ name }: { name: string }) => name);
  };
  const from = clock.wallMs();
  for (const [hours, names] of [
    [0, []],
    [0.7, ["hour"]],
    [17, []],
    [18, ["day"]],
    [143, []],
    [145, ["week"]],
  ] as const) {
    await clock.advance(from + hours * HOUR_MS - clock.wallMs());
    assert.deepEqual(await ending(), names, `after ${hours} hours`);
  }
});
