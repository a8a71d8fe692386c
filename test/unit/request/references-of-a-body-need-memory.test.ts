/**
 * docs/failure-model.md row D7: content that a request refers to is added to its body, and needs memory like the body.
 */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import test from "node:test";
import type { BodyGate } from "../../../src/accept/body.ts";
import { readRequest } from "../../../src/request/receive.ts";
import type { PipelineParts, Run } from "../../../src/request/run.ts";
import { isRefusal, refusal } from "../../../src/values/errors.ts";
import { newAccountTag, newKey, readKey } from "../../../src/values/key.ts";

const SENT = new Uint8Array(100);

/**
 * @param isLarge whether the body is so large that its key is looked up first.
 * @returns how much memory was reserved.
 */
async function heldFor({ isLarge, body }: { isLarge: boolean; body: Uint8Array }) {
  const held: number[] = [];
  const key = readKey(newKey(newAccountTag(randomBytes), randomBytes).text);
  assert.ok(key && key !== "noise");
  const hold = (bytes: number) => {
    held.push(bytes);
    return refusal("concurrency");
  };
  const seenKeys = { limited: () => undefined, bad: () => undefined, noteBad() {}, noteGood() {} };
  const parts = {
    overload: { at: () => undefined, roomFor: () => ({ hold, free() {} }) },
    settings: () => ({ idempotency: { enabled: false } }),
    journal: { health: () => ({ usable: true }) },
    admit: {
      store: { readKey: async () => ({ key: { status: "active", limits: "{}", caps: "{}" }, storeTimeMs: 0 }) },
      seenKeys,
      catalog: () => ({}),
      wallMs: () => 0,
    },
  } as unknown as PipelineParts;
  const request = {
    clientAddress: undefined,
    headers: { get: () => undefined },
    readBody: async (gate: BodyGate) => (isLarge ? await gate() : undefined) ?? SENT,
  };
  const endpoint = { read: async () => ({ body, envelope: { protocol: "chat" } }) };
  const run = { request, record: { bodyRead() {} }, endpoint, protocol: "chat" } as unknown as Run;
  const found = await readRequest(run, key, parts);
  return { held, cause: isRefusal(found) ? found.cause : undefined };
}

test("memory is reserved for the body and its references together, and without it the request is refused", async () => {
  const found = await heldFor({ isLarge: true, body: new Uint8Array(900) });
  assert.deepEqual(found, { held: [1_000], cause: "concurrency" });
});

test("a body without references needs no further memory", async () => {
  assert.deepEqual(await heldFor({ isLarge: true, body: SENT }), { held: [], cause: undefined });
});

test("no memory is reserved if the key has not been looked up: body and references are small", async () => {
  const found = await heldFor({ isLarge: false, body: new Uint8Array(900) });
  assert.deepEqual(found, { held: [], cause: undefined });
});
