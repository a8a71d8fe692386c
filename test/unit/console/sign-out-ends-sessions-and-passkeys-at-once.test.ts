/** If an account's passkeys and sessions ended one after the other, one could create the other again in between. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { startConsole } from "./running-console.ts";

test("sessions, links and passkeys of an account end in one call of the store, each counted", async (t) => {
  const { ask, store } = await startConsole(t);
  await ask("POST", "/admin/v1/accounts", { name: "alice" });
  const { tag } = (await store.findAccount("alice")) ?? assert.fail();
  const keepAll = async () => {
    for (const id of ["a", "b"]) await store.keepSignIn(tag, { kind: "session", id, data: "{}", lastsMs: 60_000 });
    for (const kind of ["link", "passkey"] as const) await store.keepSignIn(tag, { kind, id: "a", data: "{}" });
  };
  const calls: (readonly unknown[])[] = [];
  const { dropSignIns } = store;
  Object.assign(store, {
    dropSignIns(...asked: Parameters<typeof dropSignIns>) {
      calls.push(asked);
      return dropSignIns.apply(store, asked);
    },
  });
  const signOut = async (body: object) => {
    await keepAll();
    const { sessions, links, passkeys } = (await ask("POST", "/admin/v1/accounts/alice/sign-out", body)).json;
    return [sessions, links, passkeys];
  };
  assert.deepEqual(await signOut({}), [2, 1, 0]);
  assert.deepEqual(
    (await store.listSignIns(tag)).map(({ kind }) => kind),
    ["passkey"],
  );
  assert.deepEqual(await signOut({ passkeys: true }), [2, 1, 1]);
  assert.deepEqual(await store.listSignIns(tag), []);
  assert.deepEqual(calls, [
    [tag, "link", "session"],
    [tag, "link", "session", "passkey"],
  ]);
});
