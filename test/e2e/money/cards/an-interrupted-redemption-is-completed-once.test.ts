// Claim, credit and completion of a redemption are three steps on Redis (docs/failure-model.md invariant 11). A
// redemption that is interrupted between them is completed by the claimer's next attempt or by the sweep, and credited
// exactly once.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { test } from "node:test";
import type { Store } from "../../../../src/store/contract.ts";
import { openStore } from "../../../../src/store/open.ts";
import { connect, type RedisConnection } from "../../../../src/store/redis/connection/connect.ts";
import { Runner } from "../../../../src/store/redis/connection/runner.ts";
import { claim, creditClaim, endClaim, noteClaim, redeem } from "../../../../src/store/redis/redemption.ts";
import { loadScripts } from "../../../../src/store/redis/scripts.ts";
import type { CodeHash } from "../../../../src/values/code.ts";
import type { AccountTag } from "../../../../src/values/key.ts";
import { Secret } from "../../../../src/values/secret.ts";
import { startRedis, type TestRedis } from "../../../rig/redis.ts";
import { startConsole } from "../../../unit/console/running-console.ts";
import { codeHashOf, makeAccount } from "../../../unit/store/asks.ts";
import { openUrl, PATIENT } from "../../../unit/store/benches.ts";
import { card, type SoldCode, sell } from "./rig.ts";

/** Runs the first steps of a redemption on a separate connection, which is then closed. */
async function dieAfter(redis: TestRedis, steps: 0 | 1 | 2 | 3, hash: CodeHash, tag: AccountTag): Promise<void> {
  const settings = { kind: "redis", url: new Secret(redis.url) } as const;
  const runner = new Runner(await connect(settings, () => undefined), { tryMs: 400, totalMs: 480 });
  const scripts = loadScripts();
  await noteClaim(runner, scripts, hash);
  const claimed = steps > 0 ? await claim(runner, scripts, hash, tag) : undefined;
  if (steps > 1) await creditClaim(runner, scripts, tag, claimed?.code ?? assert.fail());
  if (steps > 2) await endClaim(runner, scripts, hash, tag);
  runner.connection.close();
}

/** The card lines of an account, and the state of a code. */
async function creditsOf(
  store: Store,
  tag: AccountTag,
  code: SoldCode,
): Promise<[lines: number, state: string | undefined]> {
  const lines = (await store.readLedger(tag, 0, 1_000)).filter((line) => line.reference === code.id);
  return [lines.length, (await store.getCode(code.id))?.state];
}

test("a crash after each step is completed by the claimer's next attempt, or by the sweep if there is none", async () => {
  const redis = await startRedis();
  const store = await openUrl(redis);
  try {
    const tag = await makeAccount(store, "crash", { group: "cards", funds: 0n });
    const other = await makeAccount(store, "other", { group: "cards", funds: 0n });
    for (const steps of [1, 2, 3] as const) {
      const [swept, retried] = (await sell(store, 2)) as [SoldCode, SoldCode];
      for (const { hash } of [swept, retried]) await dieAfter(redis, steps, hash, tag);
      assert.deepEqual(await store.redeem({ hash: swept.hash, tag: other }), { outcome: "used" });
      assert.equal((await store.redeem({ hash: retried.hash, tag })).outcome, "again");
      assert.deepEqual(await creditsOf(store, tag, retried), [1, "redeemed"]);
      assert.equal(await store.finishClaims(100), steps < 3 ? 1 : 0);
      assert.deepEqual(await creditsOf(store, tag, swept), [1, "redeemed"], `after ${steps} steps`);
      assert.equal(await store.finishClaims(100), 0, "nothing is left to finish");
      assert.deepEqual(await creditsOf(store, tag, swept), [1, "redeemed"]);
    }
    assert.equal((await store.inspect(other))?.entitlements.length, 0);
    assert.match(await redis.command("ZCARD", "{idx:codes}:claims"), /^:0/, "no claim is left");
  } finally {
    await store.close();
    await redis.stop();
  }
});

test("in a batch, a code whose redemption is half done counts as redeemed and is not voided", async (t) => {
  const redis = await startRedis();
  t.after(() => redis.stop());
  const store = await openUrl(redis);
  t.after(() => store.close());
  const { ask } = await startConsole(t, { store });
  const tag = await makeAccount(store, "half", { group: "cards", funds: 0n });
  const codes = Array.from({ length: 3 }, (_, i) => ({ id: `half${i}`, hash: codeHashOf(`half${i}`) }));
  const batch = `batch_${"h".repeat(16)}`;
  await store.createCodes({ ...card(), batch }, codes, { label: "half", count: codes.length });
  await dieAfter(redis, 1, codeHashOf("half1"), tag);
  assert.equal((await store.getCode("half1"))?.state, "claimed");
  const path = `/admin/v1/code-batches/${batch}`;
  const report = (await ask("GET", `${path}/report`)).json;
  assert.deepEqual([report.made, report.redeemed, report.void, report.unused], [3, 1, 0, 2]);
  const left = (await ask("POST", `${path}/void`)).json;
  assert.deepEqual([left.made, left.redeemed, left.void, left.voided_now], [3, 1, 2, 2]);
  await store.finishClaims(100);
  assert.equal((await store.getCode("half1"))?.state, "redeemed");
});

test("an account that is closed between the steps gets the card in the end, and no code stays half claimed", async () => {
  const redis = await startRedis();
  const store = await openUrl(redis);
  try {
    for (const steps of [1, 2, 3] as const) {
      const tag = await makeAccount(store, `closing${steps}`, { group: "cards", funds: 0n });
      const [swept, retried] = (await sell(store, 2)) as [SoldCode, SoldCode];
      for (const { hash } of [swept, retried]) await dieAfter(redis, steps, hash, tag);
      await store.closeAccount(tag);
      assert.equal((await store.redeem({ hash: retried.hash, tag })).outcome, "again");
      await store.finishClaims(100);
      for (const code of [swept, retried]) assert.deepEqual(await creditsOf(store, tag, code), [1, "redeemed"]);
      assert.equal(await store.finishClaims(100), 0, "nothing is left to finish");
    }
    assert.match(await redis.command("ZCARD", "{idx:codes}:claims"), /^:0/, "no claim is left");
  } finally {
    await store.close();
    await redis.stop();
  }
});

/** A connection that runs this many commands, then no more. The last one is executed, but its reply is lost. */
function dyingAfter(real: RedisConnection, commands: number): RedisConnection {
  let left = commands;
  return new Proxy(real, {
    get(target, name) {
      const own: unknown = Reflect.get(target, name, target);
      if (typeof own !== "function" || name === "ready" || name === "close") return own;
      return async (...args: unknown[]) => {
        if (left > 0) left -= 1;
        else throw new Error("the process has ended");
        const reply = await (own.apply(target, args) as Promise<unknown>);
        if (left > 0) return reply;
        throw new Error("the process ended before it received the reply");
      };
    },
  });
}

test("wherever a redemption stops, the sweep leaves the code either redeemed and credited once, or unused", async () => {
  const redis = await startRedis();
  const store = await openUrl(redis);
  const settings = { kind: "redis", url: new Secret(redis.url) } as const;
  const connection = await connect(settings, () => undefined);
  const scripts = loadScripts();
  try {
    const tag = await makeAccount(store, "stops", { group: "cards", funds: 0n });
    const [whole] = (await sell(store, 1)) as [SoldCode];
    await store.redeem({ hash: whole.hash, tag });
    const ends: string[] = [];
    for (let commands = 0; ends.at(-1) !== "done"; commands++) {
      const [code] = (await sell(store, 1)) as [SoldCode];
      const runner = new Runner(dyingAfter(connection, commands), { tryMs: 400, totalMs: 480 });
      const done = await redeem(runner, scripts, { hash: code.hash, tag }).then(
        () => true,
        () => false,
      );
      await store.finishClaims(100);
      const [lines, state] = await creditsOf(store, tag, code);
      assert.deepEqual(
        [lines, state],
        state === "unused" ? [0, "unused"] : [1, "redeemed"],
        `after ${commands} commands`,
      );
      ends.push(done ? "done" : (state ?? "gone"));
      assert.ok(commands < 20, "a redemption needs only a few commands");
    }
    assert.deepEqual([...new Set(ends)], ["unused", "redeemed", "done"]);
  } finally {
    connection.close();
    await store.close();
    await redis.stop();
  }
});

test("a claim that never reached Redis leaves the code to the next account that redeems it, and its note expires", async () => {
  const redis = await startRedis({ faketime: true });
  const store = await openUrl(redis);
  const startMs = Date.UTC(2026, 5, 1);
  redis.setTime(startMs);
  try {
    const tag = await makeAccount(store, "never", { group: "cards", funds: 0n });
    const [code, lost] = (await sell(store, 2)) as [SoldCode, SoldCode];
    await dieAfter(redis, 0, code.hash, tag);
    await dieAfter(redis, 0, lost.hash, tag);
    assert.equal(await store.finishClaims(100), 0);
    assert.match(
      await redis.command("ZCARD", "{idx:codes}:claims"),
      /^:2/,
      "the claim is kept, since its request may still arrive",
    );
    assert.equal((await store.redeem({ hash: code.hash, tag })).outcome, "redeemed");
    redis.setTime(startMs + 3_600_000);
    assert.equal(await store.finishClaims(100), 0);
    assert.match(await redis.command("ZCARD", "{idx:codes}:claims"), /^:0/);
    assert.equal((await store.getCode(lost.id))?.state, "unused");
  } finally {
    await store.close();
    await redis.stop();
  }
});

test("a code missing from the index is added again when it is redeemed", async () => {
  const redis = await startRedis();
  const store = await openUrl(redis);
  try {
    const tag = await makeAccount(store, "index", { group: "cards", funds: 0n });
    const [code] = (await sell(store, 1)) as [SoldCode];
    await redis.command("DEL", "idx:codes", "{idx:codes}:ids");
    assert.equal(await store.getCode(code.id), undefined);
    assert.equal((await store.redeem({ hash: code.hash, tag })).outcome, "redeemed");
    assert.equal((await store.getCode(code.id))?.state, "redeemed");
    assert.deepEqual(
      (await store.listCodes(undefined, 10)).items.map(({ id }) => id),
      [code.id],
    );
  } finally {
    await store.close();
    await redis.stop();
  }
});

/**
 * A process that redeems codes one after another and prints each; it is killed without warning after `count` of them.
 */
async function killAfter(store: object, codes: readonly SoldCode[], tag: AccountTag, count: number): Promise<string[]> {
  const open = new URL("../../../../src/store/open.ts", import.meta.url).href;
  const secret = new URL("../../../../src/values/secret.ts", import.meta.url).href;
  const script = `import { openStore } from ${JSON.stringify(open)};
    import { Secret } from ${JSON.stringify(secret)};
    const settings = ${JSON.stringify(store)};
    if (settings.url) settings.url = new Secret(settings.url);
    const store = await openStore(settings, ${JSON.stringify(PATIENT)});
    for (const { id, hash } of ${JSON.stringify(codes)}) {
      const { outcome } = await store.redeem({ hash, tag: ${JSON.stringify(tag)} });
      console.log(id + " " + outcome);
    }
    await new Promise(() => setInterval(() => {}, 1000));`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", script], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const reported: string[] = [];
  const exited = once(child, "exit");
  createInterface({ input: child.stdout }).on("line", (line) => {
    reported.push(line.split(" ")[0] as string);
    if (reported.length === count) child.kill("SIGKILL");
  });
  const [, signal] = await exited;
  assert.equal(signal, "SIGKILL");
  return reported;
}

/** Every code that was reported is redeemed; every code is either credited once or unused. */
async function assertWhole(
  store: Store,
  codes: readonly SoldCode[],
  reported: readonly string[],
  tag: AccountTag,
): Promise<void> {
  const lines = await store.readLedger(tag, 0, 1_000);
  for (const { id } of codes) {
    const state = (await store.getCode(id))?.state;
    const credits = lines.filter((line) => line.reference === id).length;
    assert.equal(credits, state === "redeemed" ? 1 : 0, `${id} is ${state}`);
    assert.ok(state === "redeemed" || (state === "unused" && !reported.includes(id)), `${id} is ${state}`);
  }
}

test("embedded store: a process that is killed while it redeems leaves nothing half done", async () => {
  const dir = mkdtempSync(join(tmpdir(), "tollgate-kill-"));
  const settings = { kind: "embedded", dir: join(dir, "data") } as const;
  try {
    let store = await openStore(settings);
    const tag = await makeAccount(store, "killed", { group: "cards", funds: 0n });
    const codes = await sell(store, 60);
    await store.close();
    const reported = await killAfter(settings, codes, tag, 20);
    store = await openStore(settings);
    assert.ok(reported.length >= 20);
    await assertWhole(store, codes, reported, tag);
    await store.close();
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
});

test("Redis: the redemptions of a process that is killed are completed by another process's sweep", async () => {
  const redis = await startRedis();
  const store = await openUrl(redis);
  try {
    const tag = await makeAccount(store, "killed", { group: "cards", funds: 0n });
    for (const count of [5, 11, 17]) {
      const codes = await sell(store, 40);
      const reported = await killAfter({ kind: "redis", url: redis.url }, codes, tag, count);
      await store.finishClaims(100);
      await assertWhole(store, codes, reported, tag);
    }
  } finally {
    await store.close();
    await redis.stop();
  }
});
