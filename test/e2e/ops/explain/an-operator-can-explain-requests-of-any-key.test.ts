/** `tollgate explain` and `POST /admin/v1/explain`: for any key by its id, with sizes instead of a body. */
import assert from "node:assert/strict";
import test, { after, before } from "node:test";
import { type GatewayHere, startGatewayHere, type TestAccount, testConfig } from "../../../rig/gateway.ts";
import { tollgate } from "../../money/ledger/rig.ts";
import { assertAtRest, PROTOCOL_LIST } from "../../protocol/whole/asking.ts";

const RULES = [
  { set: { temperature: 0.5 } },
  { system: { text: "confidential words", at: "start" } },
  { header: { add: { "x-vendor": "canary-value" } } },
] as const;

let here: GatewayHere;
let rich: TestAccount;
let poor: TestAccount;
before(async () => {
  here = await startGatewayHere({
    config: (places) => testConfig(places, { groups: { money: { rules: RULES } } }),
  });
  rich = await here.account();
  poor = await here.account({ usd: "0" });
});
after(() => here.close());

function explain(account: Pick<TestAccount, "keyId">, ...more: string[]) {
  const model = more.includes("--model") ? [] : ["--model", "chat-1"];
  return tollgate(here, "explain", "--key-id", account.keyId, ...model, "--protocol", "chat", ...more);
}

test("as text: the answer, every step, and the possible routes", async () => {
  const good = await explain(rich, "--max-tokens", "400", "--input-bytes", "700000");
  assert.deepEqual([good.status, good.err], [0, ""]);
  assert.match(good.out, /^Answer +200$/m);
  // 200,000 tokens of context at 2,000 nano-dollars, the highest of the input prices, and 400 at 10,000.
  assert.match(good.out, /^Worst case +0\.404 USD for 200000 input and 400 output tokens; least 0\.40016 USD$/m);
  assert.match(good.out, /^funds +yes +The balance pays: 0\.404 USD held, the whole worst case\.$/m);
  assert.match(good.out, /^limits +yes +No rate is limited; 0 of 100 requests run now\.$/m);
  assert.match(good.out, /^up-chat +healthy +chat +yes +none needed +- +set system header$/m);

  const bad = await explain(poor);
  assert.equal(bad.status, 0, "a refusal that is predicted is an answer too");
  assert.match(bad.out, /^Answer +403 insufficient_balance$/m);
  assert.match(bad.out, /^Remedy +Top up the balance, or change the key to a time-card group\.$/m);
  assert.match(bad.out, /^funds +NO +The balance does not cover the least that this request can cost\.$/m);
  assert.match(bad.out, /^routes +- +not reached$/m);
  for (const account of [rich, poor]) await assertAtRest(here, account);
});

test("for an unknown model name, the nearest name that the key's group serves is suggested", async () => {
  const stepOf = async (model: string) => /^model +NO +(.*)$/m.exec((await explain(rich, "--model", model)).out)?.[1];
  assert.equal(await stepOf("chat-l"), "Refused: unknown_model. Did you mean chat-1?");
  // Served only by another group, or too different from all names.
  for (const model of ["other-famly", "gpt-77"]) assert.equal(await stepOf(model), "Refused: unknown_model.");
});

test("a group that keys name and the configuration lacks is reported to the operator, while the client gets the usual refusal", async (t) => {
  const { catalog } = here.settings;
  const groups = new Map([...catalog.groups].filter(([name]) => name !== "money"));
  const answer = async () => {
    const body = JSON.stringify({ model: "chat-1", messages: [{ role: "user", content: "hi" }] });
    const headers = { "content-type": "application/json", authorization: `Bearer ${rich.key}` };
    const reply = await fetch(`${here.url}/v1/chat/completions`, { method: "POST", headers, body });
    return [reply.status, ((await reply.json()) as { error: { cause: string } }).error.cause];
  };
  t.after(() => here.gateway.reload(here.settings));
  here.gateway.reload({ ...here.settings, catalog: { ...catalog, groups } });
  const { out } = await explain(rich);
  assert.match(out, /^group +NO +The key's group money is not in the configuration: it was renamed or removed\.$/m);
  assert.deepEqual(await answer(), [403, "group_mismatch"]);
  const without = [...catalog.groups].map(
    ([name, group]) => [name, name === "money" ? { ...group, models: [] } : group] as const,
  );
  here.gateway.reload({ ...here.settings, catalog: { ...catalog, groups: new Map(without) } });
  assert.match((await explain(rich)).out, /^group +NO +The key's group does not serve this model\.$/m);
  assert.deepEqual(await answer(), [403, "group_mismatch"]);
});

test("the limit is lowered to what the funds cover, and a body that is too large is reported", async () => {
  const part = await here.account({ usd: "0.402" });
  const lowered = await explain(part, "--max-tokens", "400", "--input-bytes", "700000");
  assert.match(lowered.out, /^Lowered +max_completion_tokens=200$/m);
  const large = await explain(rich, "--input-bytes", "999999999999");
  assert.match(large.out, /^Answer +413 body_too_large$/m);
});

test("every protocol is explained, whatever the model's own, with the default limit and without any", async () => {
  for (const protocol of PROTOCOL_LIST) {
    for (const model of ["chat-1", "messages-1", "responses-1"]) {
      const words = ["--key-id", rich.keyId, "--model", model, "--protocol", protocol];
      const ran = await tollgate(here, "--json", "explain", ...words);
      const { expected, routes } = JSON.parse(ran.out) as {
        expected: { status: number };
        routes: { protocol: string; translation: string }[];
      };
      assert.equal(expected.status, 200, ran.out);
      assert.equal(routes[0]?.translation === "none needed", model.startsWith(protocol), ran.out);
    }
  }
});

test("the operator sees upstreams and rules; an owner sees neither names nor texts; header values are never shown", async () => {
  const ran = await tollgate(
    here,
    "--json",
    "explain",
    "--key-id",
    rich.keyId,
    "--model",
    "chat-1",
    "--protocol",
    "chat",
  );
  assert.match(ran.out, /"upstream":"up-chat"/);
  assert.match(ran.out, /temperature=0\.5/);
  assert.match(ran.out, /confidential words/);
  assert.match(ran.out, /"add":\["x-vendor"\]/);
  const body = { model: "chat-1", messages: [{ role: "user", content: "hi" }] };
  const reply = await fetch(`${here.url}/v1/explain`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${rich.key}` },
    body: JSON.stringify(body),
  });
  const own = await reply.text();
  assert.equal(reply.status, 200, own);
  assert.match(
    own,
    /"rules":\[\{"kind":"set","members":\["temperature"\]\},\{"kind":"system","at":"start"\},\{"kind":"header"\}\]/,
  );
  assert.doesNotMatch(own, /up-chat|healthy|confidential|x-vendor/);
  assert.doesNotMatch(own + ran.out, /canary|127\.0\.0\.1/);
});

test("an invalid question is refused", async () => {
  const unknown = await explain({ keyId: `key_${"a".repeat(18)}` });
  assert.deepEqual([unknown.status, /There is no key/.test(unknown.err)], [1, true]);
  assert.equal((await explain({ keyId: "key" })).status, 1);
  assert.equal((await explain(rich, "--max-tokens", "many")).status, 2);
  const words = ["--key-id", rich.keyId, "--model", "chat-1"];
  assert.equal((await tollgate(here, "explain", ...words)).status, 2);
  const smtp = await tollgate(here, "explain", ...words, "--protocol", "smtp");
  assert.deepEqual([smtp.status, /chat, messages, responses/.test(smtp.err)], [2, true], smtp.err);
});
