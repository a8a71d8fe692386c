/**
 * docs/failure-model.md invariant 35: a write that allows or ends a sign-in is answered when a replica has it; otherwise the
 * caller gets an error that says that it is unconfirmed, and what the store has done.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { type Store, UnconfirmedError } from "../../../src/store/contract.ts";
import { openStore } from "../../../src/store/open.ts";
import { confirmOn } from "../../../src/store/redis/connection/confirmed.ts";
import type { RedisConnection } from "../../../src/store/redis/connection/connect.ts";
import type { SignInKind, SignInOwner } from "../../../src/store/sign-ins.ts";
import { Secret } from "../../../src/values/secret.ts";
import { startRedis } from "../../rig/redis.ts";
import { until } from "../settle/lossy-scene.ts";
import { tagOf } from "./asks.ts";
import { PATIENT } from "./benches.ts";

const OWNERS = [tagOf("Confirmed"), "operator"] as const;
const keep = (store: Store, owner: SignInOwner, kind: SignInKind, id: string) =>
  store.keepSignIn(owner, { kind, id, data: "{}" });

test("each write of a sign-in waits for a replica", async (t) => {
  const primary = await startRedis();
  t.after(() => primary.stop());
  const replica = await startRedis({ args: ["--replicaof", "127.0.0.1", `${primary.port}`] });
  t.after(() => replica.stop());
  await until("the primary has no replica", async () =>
    (await primary.command("INFO", "replication")).includes("state=online"),
  );
  const store = await openStore({ kind: "redis", url: new Secret(primary.url) }, PATIENT);
  t.after(() => store.close());
  const operators = store.confirming();
  const made = [
    ["link", "a"],
    ["link", "b"],
    ["session", "c"],
    ["passkey", "d"],
  ] as const;
  for (const owner of OWNERS) {
    // The replica may be slow on a busy machine; the write is sent again, as operators should.
    for (const [kind, id] of made) {
      await until(`${kind} is not confirmed`, async () => {
        try {
          return (await keep(operators, owner, kind, id)) === "kept";
        } catch (error) {
          assert.ok(error instanceof UnconfirmedError, String(error));
          return false;
        }
      });
    }
    const key = owner === "operator" ? "epoch:{sign-ins}" : `{a:${owner}}:sign-ins`;
    assert.match(await replica.command("HLEN", key), /^:4/);
  }

  replica.freeze();
  for (const owner of OWNERS) {
    const answers = [
      [() => keep(operators, owner, "session", "e"), "kept"],
      [() => operators.takeSignIn(owner, "link", "a"), "a"],
      [() => operators.dropSignIn(owner, "link", "b"), true],
      [() => operators.dropSignIns(owner, "session"), 2],
    ] as const;
    for (const [write, answer] of answers) {
      const error = await write().then(
        () => assert.fail("a frozen replica has confirmed it"),
        (thrown: unknown) => thrown,
      );
      assert.ok(error instanceof UnconfirmedError, String(error));
      const said = error.answer as { id?: string } | string | boolean | number;
      assert.equal(typeof said === "object" ? said.id : said, answer);
    }
    assert.deepEqual(
      (await store.listSignIns(owner)).map(({ id }) => id),
      ["d"],
    );
  }
});

test("a write is not confirmed by a server that did not receive it", async () => {
  let losses = 0;
  const connection = { losses: () => losses, replicated: async () => true };
  const confirm = confirmOn(connection as unknown as RedisConnection);
  await confirm(["a"], "written");
  // A failover between the write and the question: the new primary says that everything it has is replicated.
  losses++;
  await assert.rejects(confirm(["a"], "written"), UnconfirmedError);
  await confirmOn(connection as unknown as RedisConnection)(["a"], "written");
});
