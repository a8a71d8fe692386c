/** Sessions that begin while the store is unreachable are kept in this process, up to a maximum. */
import assert from "node:assert/strict";
import test from "node:test";
import { keptSessions } from "../../../../src/console/operator/kept-sessions.ts";
import { StoreError } from "../../../../src/store/contract.ts";
import { type NewSignIn, SIGN_INS_MAX } from "../../../../src/store/sign-ins.ts";
import { systemClock } from "../../../../src/values/time.ts";

const session = (id: string): NewSignIn => ({ kind: "session", id, data: "{}", lastsMs: 60_000 });

/** Sessions of a process whose store does not answer. */
function sessionsWithoutStore() {
  const unreachable = () => Promise.reject(new StoreError("unavailable", "no store"));
  return keptSessions({ keepSignIn: unreachable, findSignIn: unreachable, dropSignIn: unreachable }, systemClock);
}

test("above the maximum, the session that began first ends", async () => {
  const sessions = sessionsWithoutStore();
  for (let n = 0; n <= SIGN_INS_MAX; n++) await sessions.keepSignIn("operator", session(`s${n}`));
  const found = async (id: string) => (await sessions.findSignIn("operator", "session", id))?.id;
  assert.equal(await found("s0"), undefined);
  assert.equal(await found("s1"), "s1");
  assert.equal(await found(`s${SIGN_INS_MAX}`), `s${SIGN_INS_MAX}`);
});

test("a session that began without the store ends without it", async () => {
  const sessions = sessionsWithoutStore();
  await sessions.keepSignIn("operator", session("one"));
  assert.equal(await sessions.dropSignIn("operator", "session", "one"), true);
  await assert.rejects(sessions.dropSignIn("operator", "session", "of the store"), StoreError);
});
