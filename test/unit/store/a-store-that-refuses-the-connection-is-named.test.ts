/**
 * A Redis that answers and does not let the gateway in is something else than one that does not answer: readiness and
 * the log say what it refuses, without a name or a password.
 */
import assert from "node:assert/strict";
import test, { type TestContext } from "node:test";
import { type GatewayHere, startGatewayHere } from "../../rig/gateway.ts";
import { startRedis, type TestRedis } from "../../rig/redis.ts";

const PASSWORD = "password-canary";
const USER = "user-canary";

/** A gateway whose store is this Redis, with these credentials. */
async function gatewayOf(t: TestContext, redis: TestRedis, username: string, password: string, path = "/0") {
  const url = new URL(redis.url);
  Object.assign(url, { username, password });
  const here = await startGatewayHere({ store: new URL(path, url).href });
  t.after(() => here.close());
  return here;
}

async function redisOf(t: TestContext, ...args: string[]): Promise<TestRedis> {
  const redis = await startRedis({ args });
  t.after(() => redis.stop());
  return redis;
}

/** What `/readyz` says, when it is not ready because of the store. */
async function whyUnready({ adminUrl }: GatewayHere): Promise<string> {
  for (;;) {
    const reply = await fetch(`${adminUrl}/readyz`);
    const { reasons } = (await reply.json()) as { reasons: string[] };
    if (reply.status === 503) return reasons.join();
  }
}

const refused = (why: string) => `the store refuses the connection: ${why}`;

function assertNothingShown({ log }: GatewayHere, reason: string, secrets: readonly string[]): void {
  const written = JSON.stringify(log) + reason;
  for (const secret of secrets) assert.ok(!written.includes(secret), `${secret} in ${written}`);
}

test("a wrong password and a missing password are named at the start", async (t) => {
  const redis = await redisOf(t);
  await redis.command("CONFIG", "SET", "requirepass", PASSWORD);
  const wrong = await gatewayOf(t, redis, "", "another-canary");
  const problem = refused("the user name or the password is wrong (WRONGPASS)");
  assert.equal(await whyUnready(wrong), problem);
  const { msg } = await wrong.logged(({ event }) => event === "store_away");
  assert.ok(String(msg).startsWith(`${problem}; `), String(msg));
  assertNothingShown(wrong, problem, ["canary"]);
  const none = await gatewayOf(t, redis, "", "");
  assert.equal(await whyUnready(none), refused("a password is needed, and none is configured (NOAUTH)"));
});

test("a password that was changed while the gateway ran is named once its connections are lost", async (t) => {
  const redis = await redisOf(t);
  await redis.command("CONFIG", "SET", "requirepass", PASSWORD);
  const here = await gatewayOf(t, redis, "", PASSWORD);
  assert.equal((await fetch(`${here.adminUrl}/readyz`)).status, 200);
  const [, changed, killed] = await redis.commands(
    ["AUTH", PASSWORD],
    ["CONFIG", "SET", "requirepass", "another"],
    ["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"],
  );
  assert.match(`${changed}${killed}`, /^\+OK\r\n:\d/);
  assert.equal(await whyUnready(here), refused("the user name or the password is wrong (WRONGPASS)"));
});

test("a right that is missing when connecting is named, without the name of the user", async (t) => {
  const redis = await redisOf(t);
  await redis.command("ACL", "SETUSER", USER, "on", `>${PASSWORD}`, "~*", "+@all", "-select");
  const here = await gatewayOf(t, redis, USER, PASSWORD, "/1");
  const reason = await whyUnready(here);
  assert.equal(reason, refused("its user lacks a right, which the log names (NOPERM)"));
  const { reason: logged } = await here.logged(({ event }) => event === "store_away");
  assert.match(String(logged), /select/);
  assert.ok(!reason.includes(USER));
});

test("a server without AUTH repeats the password in its reply, and the log does not have it", async (t) => {
  const redis = await redisOf(t, "--rename-command", "AUTH", "");
  const here = await gatewayOf(t, redis, USER, PASSWORD);
  const { reason } = await here.logged(({ reason }) => String(reason).includes("unknown command"));
  assert.match(String(reason), /^ERR unknown command 'auth'$/);
  const why = await whyUnready(here);
  assert.equal(why, refused("it lacks a command, which the log names (ERR unknown command)"));
  assertNothingShown(here, why, [PASSWORD, USER]);
});
