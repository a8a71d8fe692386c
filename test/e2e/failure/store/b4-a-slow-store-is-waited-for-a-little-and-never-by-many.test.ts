/**
 * docs/failure-model.md row B4: replies that take 200 ms more are waited for; with 2 s more requests are 503 in time
 * and nothing piles up.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { assertRefused, scene, settledState } from "./rig.ts";

test("every reply takes 100 ms longer: it is waited for", async (t) => {
  const s = await scene(t);
  // The first request of a process takes its own time: scripts are loaded and functions compiled.
  assert.equal(await s.status(), "200");
  s.proxy.delay(100);
  for (let i = 0; i < 5; i++) assert.equal(await s.status(), "200");
  s.proxy.delay(0);
  await settledState(s, 6);
});

test("every reply takes 200 ms longer: who is not served is 503 in time, who is served is charged once", async (t) => {
  const s = await scene(t);
  assert.equal(await s.status(), "200");
  s.proxy.delay(200);
  // ioredis gathers what comes while a pipeline is out: a command waits for the one before, then for its own reply.
  const answers = await Promise.all(Array.from({ length: 40 }, () => s.status()));
  const served = answers.filter((answer) => answer === "200").length;
  assert.equal(answers.filter((answer) => answer === "503 store_unavailable").length, 40 - served);
  s.proxy.delay(0);
  await settledState(s, 1 + served);
});

test("every reply takes 2 s longer: 503 in time, few wait, and what was held meanwhile is given back", async (t) => {
  const s = await scene(t);
  assert.equal(await s.status(), "200");
  s.proxy.delay(2_000);
  await assertRefused(s, 40);
  await s.opened();
  const asked = s.proxy.asked();
  for (let round = 0; round < 10; round++) await assertRefused(s, 20, 250);
  // The second tries of the first forty were gathered after their first; the others are probes.
  assert.ok(s.proxy.asked() - asked <= 60, `${s.proxy.asked() - asked} scripts were sent for 200 requests`);
  s.proxy.delay(0);
  await s.closed();
  assert.equal(await s.status(), "200");
  await settledState(s, 2);
});
