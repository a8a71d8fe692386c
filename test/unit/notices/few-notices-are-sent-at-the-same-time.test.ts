/** A receiver that answers slowly has at most eight notices at a time, however many accounts have one. */
import assert from "node:assert/strict";
import test from "node:test";
import { makeAccount } from "../store/asks.ts";
import { rest, startRig, until } from "./rig.ts";

test("of the notices of twenty accounts eight are in flight, and the others follow as these are accepted", async (t) => {
  const answers: (() => void)[] = [];
  let most = 0;
  let accepted = 0;
  const { clock, store } = await startRig(t, {
    fetch(_url, { signal } = {}) {
      const { promise, resolve, reject } = Promise.withResolvers<Response>();
      signal?.addEventListener("abort", () => reject(new Error("aborted")));
      answers.push(() => resolve(new Response(null, { status: 204 })));
      most = Math.max(most, answers.length - accepted);
      return promise;
    },
  });
  for (let i = 0; i < 20; i++) {
    const notice = { kind: "balance_low", ref: `${i}`, data: { balance: "1", below: "2" } } as const;
    await store.addNotice(await makeAccount(store, `Account${i}`), notice);
  }
  await until(clock, () => answers.length >= 8);
  await rest(clock);
  assert.equal(answers.length, 8);
  while (accepted < 20) {
    await until(clock, () => answers.length > accepted);
    answers[accepted]?.();
    accepted++;
    await rest(clock);
  }
  assert.deepEqual([answers.length, most], [20, 8]);
});
