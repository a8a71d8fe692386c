/**
 * docs/failure-model.md row B13: scripts that could stop halfway. A gateway does not start with a Redis user that lacks
 * any of its rights. If the user loses a right while the gateway runs, requests are refused, and everything is charged
 * once, with its ledger lines, when the right is back.
 */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test, { suite, type TestContext } from "node:test";
import { auditAccount } from "../../../../src/store/ledger/audit.ts";
import { neededRights } from "../../../../src/store/redis/connection/rights.ts";
import { loadScripts } from "../../../../src/store/redis/scripts.ts";
import { auditToEnd } from "../../../rig/audit-to-end.ts";
import { type GatewayHere, spawnGateway, startGatewayHere, testConfig } from "../../../rig/gateway.ts";
import { startRedis, type TestRedis } from "../../../rig/redis.ts";
import { PATIENT } from "../../../unit/store/benches.ts";
import { tollgate } from "../../money/ledger/rig.ts";
import { ask, errorOf } from "../../protocol/whole/asking.ts";
import { settledState } from "./rig.ts";

const shipped = readFileSync(new URL("../../../../deploy/redis-acl.conf", import.meta.url), "utf8");
/** The rules of the shipped user, after `user tollgate on #hash`. */
const RULES = (/^user tollgate on #0+ (?<rules>.+)$/m.exec(shipped)?.groups?.rules ?? "").split(" ");
const COMMANDS = [...new Set(neededRights(loadScripts(), false).map(({ command }) => command))];

interface Guarded {
  readonly redis: TestRedis;
  readonly url: string;
  /** Changes the user's rules: `-zrem`, `+zrem`. */
  rule(...rules: string[]): Promise<void>;
}

async function guarded(t: TestContext): Promise<Guarded> {
  const redis = await startRedis({ args: ["--appendonly", "yes"] });
  t.after(() => redis.stop());
  const rule = async (...rules: string[]) => {
    assert.match(await redis.command("ACL", "SETUSER", "tollgate", ...rules), /^\+OK/);
  };
  await rule("on", ">secret", ...RULES);
  return { redis, url: `redis://tollgate:secret@127.0.0.1:${redis.port}`, rule };
}

test("docs/configuration.md has the shipped user as a command", () => {
  const document = readFileSync(new URL("../../../../docs/configuration.md", import.meta.url), "utf8");
  const said = /ACL SETUSER tollgate on '>[^']+' (?<rules>[^`]+?)\n```/.exec(document)?.groups?.rules ?? "";
  const words = said.replaceAll("\\\n", " ").replaceAll("'", "").trim().split(/\s+/);
  assert.deepEqual(words, RULES);
});

test("the shipped user has exactly the rights that the gateway checks", () => {
  const asked = neededRights(loadScripts(), true).map(({ command }) => `+${command.toLowerCase().replace(" ", "|")}`);
  assert.deepEqual(RULES.filter((one) => one.startsWith("+")).sort(), [...new Set(asked)].sort());
});

test("a gateway refuses to start with a user that lacks any one right, and names it", async (t) => {
  const { url, rule } = await guarded(t);
  assert.ok(COMMANDS.length > 20, `${COMMANDS}`);
  for (const command of COMMANDS) {
    await rule(`-${command.toLowerCase()}`);
    await assert.rejects(
      startGatewayHere({ store: url }).then((here) => here.close()),
      (error: Error) => error.message.includes(`may not ${command}`) && error.message.includes("deploy/redis-acl.conf"),
      command,
    );
    await rule(`+${command.toLowerCase()}`);
  }
  await (await startGatewayHere({ store: url })).close();
});

test("a gateway refuses to start if the user may not access a kind of key, and names it", async (t) => {
  const { url, rule } = await guarded(t);
  for (const key of RULES.filter((one) => one.startsWith("~"))) {
    await rule("resetkeys", ...RULES.filter((one) => one.startsWith("~") && one !== key));
    const start = startGatewayHere({ store: url }).then((here) => here.close());
    await assert.rejects(start, /may not [A-Z]+ on /, key);
  }
});

test("a process with such a user exits with the reason", async (t) => {
  const { url, rule } = await guarded(t);
  await rule("-zrem");
  const dir = t.name.replaceAll(" ", "-");
  await assert.rejects(
    spawnGateway(testConfig({ upstreamUrl: "http://127.0.0.1:9", dir, store: url })),
    (error: Error) => /ended with 1:[\s\S]*may not ZREM on/.test(error.message),
  );
});

test("an audit that may not run its scripts has no findings, and says why", async (t) => {
  const { url, rule } = await guarded(t);
  const here = await startGatewayHere({ store: url });
  t.after(() => here.close());
  const account = await here.account({ usd: "1" });
  assert.deepEqual((await auditToEnd(auditAccount(here.store, account))).findings, []);
  await rule("-zrem");
  await here.logged(({ msg }) => msg === "the store is not fit for use");
  await assert.rejects(auditToEnd(auditAccount(here.store, account)), /may not ZREM/);
  await rule("+zrem");
  await here.logged(({ msg }) => msg === "the store is fit for use again");
  assert.deepEqual((await auditToEnd(auditAccount(here.store, account))).findings, []);
});

/** Rights without which an admission or a settlement cannot complete. */
const TAKEN = ["zrem", "hdel", "xadd", "hset", "hget", "zadd", "set", "evalsha"];

// Most of the time is spent waiting for retries; each test has a Redis and a gateway of its own. With so many in one
// process, a store that always answers must not time out.
suite("a right is revoked while the gateway runs", { concurrency: TAKEN.length }, () => {
  for (const right of TAKEN) {
    test(`-${right} revoked: requests are refused until it is back, and no charge is lost or duplicated`, async (t) => {
      const { url, rule } = await guarded(t);
      const here = await startGatewayHere({ store: url, storeTimes: PATIENT });
      t.after(() => here.close());
      const account = await here.account({ usd: "1000" });
      assert.equal(await statusOf(here, account.key), "200");
      const before = await settledState({ here, account }, 1);
      here.simulator.hold();
      const running = statusOf(here, account.key);
      await here.simulator.waitFor(2);
      await rule(`-${right}`);
      const unfit = here.logged(({ msg }) => msg === "the store is not fit for use");
      here.simulator.release();
      // Admitted requests are answered; their charges wait in the journal.
      assert.equal(await running, "200");
      assert.equal(await statusOf(here, account.key), "503 store_unavailable");
      await unfit;
      const ready = await fetch(`${here.adminUrl}/readyz`);
      assert.equal(ready.status, 503);
      assert.match(await ready.text(), new RegExp(`may not ${right.toUpperCase()}`));
      const lines = here.log.filter((line) => `${line.msg} ${line.reason}`.includes(`may not ${right.toUpperCase()}`));
      // Settlements and sometimes the verification log the same error.
      const checked = lines.filter(({ msg }) => !/ waits|is retried/.test(String(msg)));
      assert.deepEqual(
        checked.map(({ msg }) => msg),
        ["the store is not fit for use"],
        "logged once",
      );

      await rule(`+${right}`);
      const after = await settledState({ here, account }, 2);
      assert.ok(after.account.balance < before.account.balance);
      while ((await statusOf(here, account.key)) !== "200")
        assert.ok(here.log.length < 5_000, "requests are served again");
      await settledState({ here, account }, 3);
      const verified = await tollgate(here, "ledger", "verify", "--account", account.name);
      assert.equal(verified.status, 0, verified.err);
    });
  }
});

test("an operator is told what is wrong with the store, by its status and by each command that needs it", async (t) => {
  const { redis, url, rule } = await guarded(t);
  const here = await startGatewayHere({ store: url });
  t.after(() => here.close());
  await here.account({ usd: "1" });
  const status = () => tollgate(here, "store", "status");
  assert.equal((await status()).status, 0);
  const unfit = here.logged(({ msg }) => msg === "the store is not fit for use");
  await rule("-hget");
  await unfit;
  const lacking = /the store is not fit for use: the user of Redis may not HGET on .*deploy\/redis-acl\.conf/;
  const lame = await status();
  assert.equal(lame.status, 1);
  assert.match(lame.out, lacking);
  assert.doesNotMatch(lame.out, /has all of its data/);
  const create = await tollgate(here, "account", "create", "carol");
  assert.equal(create.status, 1);
  assert.match(create.err, lacking);
  assert.match(create.err, /it is unknown whether a change was made\.\nRepeat the request/);

  await rule("+hget");
  await here.logged(({ msg }) => msg === "the store is fit for use again");
  assert.equal((await status()).status, 0);
  await redis.kill();
  const gone = await status();
  assert.equal(gone.status, 1);
  assert.match(gone.out, /^The store cannot be used: the store does not answer\.\n/);
  assert.match(gone.err, /^New requests are refused until the store can be used\.\n$/);
});

test("a key of the wrong type blocks the settlements of one account only, until it is repaired", async (t) => {
  const { redis, url } = await guarded(t);
  const here = await startGatewayHere({ store: url });
  t.after(() => here.close());
  const [harmed, other] = [await here.account({ usd: "1000" }), await here.account({ usd: "1000" })];
  const ledger = `{a:${harmed.tag}}:l`;
  assert.equal(await statusOf(here, harmed.key), "200");
  await settledState({ here, account: harmed }, 1);
  // A foreign tool overwrites the ledger, and the operator restores it.
  await redis.command("RENAME", ledger, "aside");
  await redis.command("SET", ledger, "x");
  const stuck = here.logged(({ msg }) => String(msg).startsWith("a settlement is retried until the store accepts it"));
  assert.equal(await statusOf(here, harmed.key), "200");
  assert.match(
    String((await stuck).reason),
    /^[^\n]*WRONGTYPE[^\n]*$/,
    "the reason is one sentence without a stack trace",
  );
  assert.match(await redis.command("HGET", `{a:${harmed.tag}}`, "todo"), /^\$\d/, "the settlement stopped half-way");
  assert.equal(await statusOf(here, harmed.key), "503 store_unavailable");
  assert.equal(await statusOf(here, other.key), "200");
  // In one command: a settlement between two commands would write its line to a ledger that is then removed.
  await redis.command("RENAME", "aside", ledger);
  await settledState({ here, account: harmed }, 2);
  await settledState({ here, account: other }, 1);
  const verified = await tollgate(here, "ledger", "verify");
  assert.equal(verified.status, 0, verified.err);
});

async function statusOf(here: GatewayHere, key: string): Promise<string> {
  const reply = await ask(here, "chat", key);
  if (reply.status !== 200) return `${reply.status} ${(await errorOf(reply)).cause}`;
  await reply.arrayBuffer();
  return "200";
}
