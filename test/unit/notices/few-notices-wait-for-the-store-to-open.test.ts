/** While a gateway starts, a store that does not open may cause the same notice again and again; sixteen are kept. */
import assert from "node:assert/strict";
import test from "node:test";
import { rest, startRig, until } from "./rig.ts";

test("of the notices from before there is a store, the first sixteen are delivered", async (t) => {
  const { clock, receiver } = await startRig(t, {
    early(notices) {
      for (let i = 0; i < 40; i++) notices.note("books_off", { finding: `${i}` });
    },
  });
  await until(clock, () => receiver.log.length >= 16);
  await rest(clock);
  const findings = receiver.log.map(({ body }) => JSON.parse(body).data.finding);
  assert.deepEqual(
    findings,
    Array.from({ length: 16 }, (_, i) => `${i}`),
  );
});
