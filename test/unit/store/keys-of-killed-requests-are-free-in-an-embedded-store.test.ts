/**
 * Row A2 of docs/failure-model.md: an embedded store that is opened again has the idempotency keys of killed requests but none of
 * their holds. When the journal's charges are settled, a key without a hold belongs to a request that will never end.
 */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import type { AdmitAsk } from "../../../src/store/admission.ts";
import { openStore } from "../../../src/store/open.ts";
import type { AccountTag } from "../../../src/values/key.ts";
import { newRequestId } from "../../../src/values/request-id.ts";
import { admitAsk, admitted, causeOf, DAY_MS, hashOf, makeAccount, ridOf, settleAsk } from "./asks.ts";

const NOW_MS = 1_800_000_000_000;

/** A request under the idempotency key `key`. */
const keyed = (tag: AccountTag, number: number, key = "k"): AdmitAsk =>
  admitAsk({
    tag,
    requestId: ridOf(number),
    holdTtlMs: 60_000,
    idempotency: { key: hashOf(key), fingerprint: hashOf(`${key} body`) },
  });

test("a running request of an earlier process keeps its key until the journal is settled, one of this process keeps it always", async (t) => {
  const dir = mkdtempSync(join(tmpdir(), "tollgate-keys-"));
  t.after(() => rmSync(dir, { recursive: true, force: true }));
  let isRecovered = false;
  const open = () => openStore({ kind: "embedded", dir }, { now: () => NOW_MS, isRecovered: () => isRecovered });

  const before = await open();
  const tag = await makeAccount(before, "Killed");
  const charged = keyed(tag, 1, "charged");
  const permit = admitted(await before.admit(charged));
  const idempotency = { ...keyed(tag, 1, "charged").idempotency, streamed: true, untilMs: NOW_MS + DAY_MS };
  await before.settle({ ...settleAsk(charged, permit, { amount: 5n }), admittedAtMs: NOW_MS, idempotency } as never);
  admitted(await before.admit(keyed(tag, 2)));
  await before.close();

  const after = await open();
  t.after(() => after.close());
  assert.equal(causeOf(await after.admit(keyed(tag, 3))), "idempotency_in_progress");
  isRecovered = true;
  assert.equal(causeOf(await after.admit(keyed(tag, 4, "charged"))), "idempotency_streamed");
  admitted(await after.admit(keyed(tag, 5)));
  assert.equal(causeOf(await after.admit(keyed(tag, 6))), "idempotency_in_progress", "of this process");
  assert.deepEqual((await after.inspect(tag))?.idempotency.map(({ requestId, state }) => [requestId, state]).sort(), [
    [ridOf(1), "streamed"],
    [ridOf(5), "running"],
  ]);
});

test("a clock that was ahead for a time, so that holds expired, frees no key of a request of this process", async (t) => {
  const dir = mkdtempSync(join(tmpdir(), "tollgate-keys-"));
  t.after(() => rmSync(dir, { recursive: true, force: true }));
  let nowMs = NOW_MS;
  const store = await openStore({ kind: "embedded", dir }, { now: () => nowMs, isRecovered: () => true });
  t.after(() => store.close());
  const tag = await makeAccount(store, "Running");
  const next = () => ({ ...keyed(tag, 1), requestId: newRequestId(nowMs, randomBytes) });
  nowMs += 1_000;
  admitted(await store.admit(next()));
  nowMs += 3_600_000;
  admitted(await store.admit({ ...next(), idempotency: undefined }));
  assert.deepEqual((await store.inspect(tag))?.holds.length, 1, "the first hold has expired");
  nowMs -= 3_600_000;
  assert.equal(causeOf(await store.admit(next())), "idempotency_in_progress");
});
