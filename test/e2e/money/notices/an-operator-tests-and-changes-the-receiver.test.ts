/** By command line, an operator tests the receiver, lists waiting notices, sets thresholds and changes the receiver. */
import assert from "node:assert/strict";
import test, { type TestContext } from "node:test";
import { Secret } from "../../../../src/values/secret.ts";
import { testConfig } from "../../../rig/config.ts";
import { type GatewayHere, startGatewayHere } from "../../../rig/gateway.ts";
import { run } from "../../../unit/cli/captured-run.ts";
import { type Receiver, startReceiver, webhookSecret } from "./receiver.ts";

interface World {
  readonly here: GatewayHere;
  readonly receiver: Receiver;
  tollgate(...argv: string[]): ReturnType<typeof run>;
}

async function startWorld(t: TestContext): Promise<World> {
  const receiver = await startReceiver(webhookSecret("one"));
  const here = await startGatewayHere({
    config: (places) =>
      testConfig(places, {
        upstreams: { "up-chat": { health: { failures: 1 } } },
        notices: { url: receiver.url, secrets: [webhookSecret("one")], balance_below: "5" },
      }),
  });
  t.after(async () => {
    await here.close();
    await receiver.close();
  });
  const env = { TOLLGATE_ADMIN_URL: here.adminUrl, TOLLGATE_ADMIN_TOKEN: "test-admin-token" };
  return { here, receiver, tollgate: (...argv) => run(argv, { env }) };
}

const adjust = (name: string, usd: string, id: string) => [
  "account",
  "adjust",
  name,
  "--usd",
  usd,
  "--id",
  id,
  "--note",
  "n",
];

test("the test command reports whether the receiver takes notices, and what to check if it does not", async (t) => {
  const { here, receiver, tollgate } = await startWorld(t);
  const good = await tollgate("webhook", "test");
  assert.match(
    good.out,
    /^The test notice msg_[\w-]{27} was accepted with 204, after \d+ ms\.\nCheck in the receiver's log that it verified the signature\./,
  );
  assert.equal(good.status, 0);
  assert.deepEqual(
    receiver.log.map(({ type }) => type),
    ["test"],
  );
  receiver.answer = () => ({ status: 401 });
  const bad = await tollgate("webhook", "test");
  assert.equal(bad.status, 1);
  assert.match(
    bad.out,
    /was not accepted: it answered 401, .*\nCheck that the receiver has one of the secrets in notices/,
  );
  const other = await startReceiver(webhookSecret("another"));
  t.after(() => other.close());
  const url = new Secret(other.url);
  const notices = here.settings.notices;
  assert.ok(notices);
  here.gateway.reload({ ...here.settings, notices: { ...notices, url } });
  assert.match((await tollgate("webhook", "test")).out, /it answered 401/);
  assert.equal(other.log[0]?.type, "unverified");
  const asJson = await tollgate("--json", "webhook", "test");
  assert.equal(JSON.parse(asJson.out).status, 401);
  assert.doesNotMatch(asJson.out + bad.out + JSON.stringify(here.log), /whsec_|hooks\/tollgate|for=tests/);
  here.gateway.reload({ ...here.settings, notices: undefined });
  const none = await tollgate("webhook", "test");
  assert.deepEqual([none.status, none.err.includes("has no receiver for notices")], [1, true]);
  assert.match((await tollgate("audit")).out, /Refused \(no receiver\): send a test notice to the receiver/);
});

test("waiting notices are listed with the reason, and go to a receiver that replaces the old one", async (t) => {
  const { here, receiver, tollgate } = await startWorld(t);
  const idle = `No notices are waiting.\nThis gateway delivers to ${new URL(receiver.url).origin}.\n`;
  // A gateway takes the delivery lease a moment after its start.
  for (let said = ""; said !== idle; ) {
    said = (await tollgate("webhook", "list")).out;
    assert.match(said, /^No notices are waiting\.\n/);
  }
  receiver.answer = () => ({ status: 503 });
  const { name } = await here.account();
  const set = await tollgate("account", "notify", name, "--below", "9.5");
  assert.deepEqual(
    [set.out, set.err],
    [`A notice is sent when the balance of ${name} falls below 9.50 USD.\n`, ""],
    "the receiver is taken from the configuration",
  );
  assert.match((await tollgate("account", "show", name)).out, /^Notice below USD +9\.50$/m);
  await tollgate(...adjust(name, "-1", "a1"));
  await tollgate(...adjust(name, "1", "a2"));
  await tollgate(...adjust(name, "-2", "a3"));
  await receiver.until(() => receiver.log.length === 1);
  await here.logged(({ event }) => event === "notice_failed");
  const listed = (await tollgate("webhook", "list")).out;
  assert.match(listed, /^ACCOUNT +WAITING +DROPPED +OLDEST +OF, UTC +FAILURES +LAST ERROR +NEXT TRY, UTC\n/);
  assert.match(listed, new RegExp(`^${name} +2 +0 +balance_low +\\S+Z +1 +it answered 503 +\\S+Z$`, "m"));
  assert.match((await tollgate("webhook", "list", "--format", "csv")).out, new RegExp(`\r\n${name},2,0,balance_low,`));
  const next = await startReceiver(webhookSecret("two"));
  t.after(() => next.close());
  assert.ok(here.settings.notices);
  const notices = {
    ...here.settings.notices,
    url: new Secret(next.url),
    secrets: [new Secret(webhookSecret("one")), new Secret(webhookSecret("two"))],
  };
  here.gateway.reload({ ...here.settings, notices });
  await next.until(() => next.log.length === 2);
  assert.deepEqual(
    next.log.map(({ account, reference }) => [account, reference]),
    [
      [name, "a1"],
      [name, "a3"],
    ],
  );
  assert.equal((await tollgate("webhook", "retry")).status, 0);
  const back = await tollgate("account", "notify", name, "--below", "none");
  assert.equal(back.out, `Balance notices of ${name} use the configured threshold.\n`);
  assert.equal((await tollgate("account", "notify", name, "--below", "-1")).status, 2);
  const { out } = await tollgate("audit");
  assert.match(out, new RegExp(`Done: send a notice when the balance of ${name} falls below 9.5 USD`));
  assert.match(out, /Done: retry the notices that wait for the receiver/);
});

test("an upstream that is ejected and a key that is suspended cause notices", async (t) => {
  const { here, receiver, tollgate } = await startWorld(t);
  const { key, keyId, name } = await here.account();
  await here.simulator.close();
  const answer = await fetch(`${here.url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json", connection: "close" },
    body: JSON.stringify({ model: "chat-1", max_tokens: 20, messages: [{ role: "user", content: "Hello" }] }),
  });
  assert.notEqual(answer.status, 200, await answer.text());
  await tollgate("key", "suspend", keyId);
  await receiver.until(() => receiver.log.length === 2);
  const out = receiver.log.find(({ type }) => type === "upstream_out");
  assert.match(out?.body ?? "", /"upstream":"up-chat","reason":"failures","rest_seconds":"\d+","instance":"[\w-]{12}"/);
  const suspended = receiver.log.find(({ type }) => type === "key_suspended");
  assert.equal(suspended?.account, name);
  assert.ok(suspended?.body.includes(`"key":"${keyId}","name":"","group":"money"`));
  assert.ok(!receiver.log.some(({ body }) => body.includes(key) || body.includes("Hello")));
});
