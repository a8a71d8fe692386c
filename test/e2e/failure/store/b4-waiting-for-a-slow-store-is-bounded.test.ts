/**
 * docs/failure-model.md row B4: the gateway waits for replies that take 200 ms longer; if they take 2 s longer,
 * requests get 503 in time and none pile up.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { assertRefused, scene, settledState } from "./rig.ts";

test("if every reply takes 100 ms longer, requests wait and are served", async (t) => {
  const s = await scene(t);
  // The first request of a process takes longer: scripts are loaded and functions compiled.
  assert.equal(await s.status(), "200");
  s.proxy.delay(100);
  for (let i = 0; i < 5; i++) assert.equal(await s.status(), "200");
  s.proxy.delay(0);
  await settledState(s, 6);
});

test("if every reply takes 200 ms longer, each request is either refused with 503 in time or served and charged once", async (t) => {
  const s = await scene(t);
  assert.equal(await s.status(), "200");
  s.proxy.delay(200);
  // ioredis collects commands while a pipeline is in flight: a command waits for the pipeline before, then for its own
  // reply.
  const answers = await Promise.all(Array.from({ length: 40 }, () => s.status()));
  const served = answers.filter((answer) => answer === "200").length;
  assert.equal(answers.filter((answer) => answer === "503 store_unavailable").length, 40 - served);
  s.proxy.delay(0);
  await settledState(s, 1 + served);
});

test("if every reply takes 2 s longer, requests get 503 in time, few wait, and holds made in the meantime are released", async (t) => {
  const s = await scene(t);
  assert.equal(await s.status(), "200");
  s.proxy.delay(2_000);
  await assertRefused(s, 40);
  await s.opened();
  const asked = s.proxy.asked();
  for (let round = 0; round < 10; round++) await assertRefused(s, 20, 250);
  // The retries of the first forty were collected after their first attempts; the others are probes.
  assert.ok(s.proxy.asked() - asked <= 60, `${s.proxy.asked() - asked} scripts were sent for 200 requests`);
  s.proxy.delay(0);
  await s.closed();
  assert.equal(await s.status(), "200");
  await settledState(s, 2);
});
