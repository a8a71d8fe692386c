/** A store on Redis whose replica hangs, for tests of what operators are told then. */
import type { TestContext } from "node:test";
import type { Store } from "../../../src/store/contract.ts";
import { nanoUsd } from "../../../src/values/money.ts";
import { startRedis } from "../../rig/redis.ts";
import { until } from "../settle/lossy-scene.ts";
import { codeHashOf, DAY_MS, hashOf, makeAccount, type tagOf } from "./asks.ts";
import { openUrl } from "./benches.ts";

export const CARD = { card: "day", plan: "pro", group: "cards", lastsMs: DAY_MS };
export const CODE = {
  ...CARD,
  starts: "at_redemption",
  quota: nanoUsd(5n),
  expiresAtMs: undefined,
  batch: undefined,
} as const;
export const [MADE, VOIDED, REDEEMED] = ["code_made", "code_voided", "code_redeemed"] as const;
export const codesOf = (...ids: readonly string[]) => ids.map((id) => ({ id, hash: codeHashOf(id) }));

export type Tag = ReturnType<typeof tagOf>;

/** A store whose replica has an account with a key and two codes, and answers no more. */
export async function behindAHangingReplica(t: TestContext): Promise<{ operators: Store; tag: Tag }> {
  const primary = await startRedis();
  t.after(() => primary.stop());
  const replica = await startRedis({ args: ["--replicaof", "127.0.0.1", `${primary.port}`] });
  t.after(() => replica.stop());
  await until("the primary has no replica", async () =>
    (await primary.command("INFO", "replication")).includes("state=online"),
  );
  const store = await openUrl(primary);
  t.after(() => store.close());
  const tag = await makeAccount(store, "Operated", { funds: 100n });
  await store.createKey(tag, { id: "key_1", hash: hashOf("one"), group: "big" });
  await store.createCodes(CODE, codesOf(VOIDED, REDEEMED), undefined);
  replica.freeze();
  return { operators: store.confirming(), tag };
}
