/** docs/failure-model.md invariant 29: if the journal cannot be written, a large body is refused before it is read. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import test from "node:test";
import type { BodyGate } from "../../../src/accept/body.ts";
import { readRequest } from "../../../src/request/receive.ts";
import type { PipelineParts, Run } from "../../../src/request/run.ts";
import { isRefusal, refusal } from "../../../src/values/errors.ts";
import { newAccountTag, newKey, readKey } from "../../../src/values/key.ts";

function asked(usable: boolean) {
  const calls: string[] = [];
  const key = readKey(newKey(newAccountTag(randomBytes), randomBytes).text);
  assert.ok(key && key !== "noise");
  const store = { readKey: async () => void calls.push("store") };
  const seenKeys = { limited: () => undefined, bad: () => undefined, noteBad() {}, noteGood() {} };
  const parts = {
    overload: { at: () => undefined, roomFor: () => undefined },
    settings: () => ({ idempotency: { enabled: false } }),
    journal: { health: () => ({ usable }) },
    admit: { store, seenKeys, catalog: () => ({}), wallMs: () => 0 },
  } as unknown as PipelineParts;
  const request = {
    clientAddress: undefined,
    headers: { get: () => undefined },
    /** Like a body too large to be read before its key is checked. */
    readBody: async (gate: BodyGate) => (await gate()) ?? refusal("not_json"),
  };
  const record = { bodyRead: () => void calls.push("read") };
  const run = { request, record, endpoint: {}, protocol: "chat" } as unknown as Run;
  return { calls, read: () => readRequest(run, key, parts) };
}

test("if the journal is unusable, it refuses the request, and the store is not asked", async () => {
  const { calls, read } = asked(false);
  const found = await read();
  assert.equal(isRefusal(found) && found.cause, "journal_full");
  assert.deepEqual(calls, ["read"], "the time at which the body was handled is recorded");
});

test("if the journal is usable, the key is looked up first", async () => {
  const { calls, read } = asked(true);
  const found = await read();
  assert.equal(isRefusal(found) && found.cause, "unknown_key");
  assert.deepEqual(calls, ["store", "read"]);
});
