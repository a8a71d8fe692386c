/** Answers to owners contain no operator-only data: cost, absorbed amounts, margin, upstreams and notes. */
import assert from "node:assert/strict";
import test from "node:test";
import Schema from "typebox/schema";
import { OwnExplanationShape } from "../../../../../src/console/answers/explanation.ts";
import {
  ErrorsShape,
  OwnLinesPage,
  OwnModelsShape,
  OwnRequestShape,
  OwnUsageShape,
} from "../../../../../src/console/answers/own-usage.ts";
import { nanoUsd } from "../../../../../src/values/money.ts";
import { type ConfigPlaces, testConfig } from "../../../../rig/config.ts";
import { type GatewayHere, startGatewayHere, type TestAccount } from "../../../../rig/gateway.ts";
import { type OwnerAnswered, signIn, spend } from "./owner-pages.ts";

/** Costs that cannot be mistaken for prices. */
const config = (places: ConfigPlaces) =>
  testConfig(places, {
    models: {
      "chat-1": {
        routes: [
          {
            upstream: "up-chat",
            model: "secret-at-upstream",
            cost: { input: "0.777", cached_input: "0.777", output: "7.77" },
          },
        ],
      },
    },
  });

const FORBIDDEN = /cost|absorbed|margin|upstream|up-chat|secret-at-upstream|0\.777|for the books only/;
/** Where `upstream` may appear all the same: as the source of a count, and in the names of errors. */
const allowed = (text: string) => text.replaceAll('"counted":"upstream"', "").replaceAll(/"upstream_[a-z_]+"/g, '""');

async function makeAll(t: {
  after(call: () => unknown): void;
}): Promise<{ gateway: GatewayHere; alice: TestAccount; bob: TestAccount }> {
  const gateway = await startGatewayHere({ config });
  t.after(() => gateway.close());
  return { gateway, alice: await gateway.account(), bob: await gateway.account() };
}

test("usage, lines and requests show the charge with the figures to verify it, and nothing else", async (t) => {
  const { gateway, alice } = await makeAll(t);
  const id = await spend(gateway, alice.key);
  await gateway.store.credit(alice.tag, {
    id: "adj-1",
    amount: nanoUsd(-1_000_000n),
    kind: "adjust",
    note: "for the books only",
  });
  const ask = await signIn(gateway, alice.name);
  const answers: OwnerAnswered[] = [];
  for (const path of ["/usage", "/lines", `/requests/${id}`, "/models", "/session"]) {
    const answer = await ask("GET", path);
    assert.equal(answer.status, 200, path);
    assert.doesNotMatch(allowed(answer.text), FORBIDDEN, path);
    answers.push(answer);
  }
  const [usage, lines, request] = answers.map(({ json }) => json);
  assert.equal(usage.total.requests, 1);
  for (const by of ["by_day", "by_model", "by_key", "by_group"]) assert.equal(usage[by].length, 1, by);
  assert.deepEqual(
    lines.items.map(({ kind }: { kind: string }) => kind),
    ["adjust", "usage", "topup"],
  );
  assert.equal(lines.items[0].change_usd, "-0.001");
  const { charge, usd, change_usd: change } = request.line;
  assert.equal(request.outcome, "charged");
  assert.equal(charge.why, "exact");
  assert.equal(charge.computed_usd, usd);
  assert.equal(change, `-${usd}`);
  assert.equal(usage.total.usd, usd);
  const sum = charge.tokens.reduce(
    (all: number, { usd: part }: { usd: string }) => all + Math.round(Number(part) * 1e12),
    0,
  );
  assert.equal(Math.round(sum / 1e3), Math.round(Number(usd) * 1e9));
  assert.deepEqual(request.tries, [{ outcome: "ok", status: 200, charged: true, why: "answered" }]);
});

test("an explanation of the account's own key names no upstream; another account's key has none", async (t) => {
  const { gateway, alice, bob } = await makeAll(t);
  const ask = await signIn(gateway, alice.name);
  const asked = { key_id: alice.keyId, model: "chat-1", protocol: "messages" };
  const own = await ask("POST", "/explain", asked);
  assert.equal(own.status, 200);
  assert.equal(own.json.expected.status, 200);
  assert.deepEqual(Object.keys(own.json.routes[0]).sort(), [
    "carries",
    "dropped",
    "protocol",
    "refusal",
    "rules",
    "translation",
  ]);
  assert.doesNotMatch(own.text, /up-chat|secret-at-upstream|0\.777/);
  const other = await ask("POST", "/explain", { ...asked, key_id: bob.keyId });
  assert.deepEqual([other.status, other.json.error.code], [404, "unknown_key"]);
});

test("another account's request is not found, and neither is one that never existed", async (t) => {
  const { gateway, alice, bob } = await makeAll(t);
  const id = await spend(gateway, bob.key);
  const ask = await signIn(gateway, alice.name);
  for (const wrong of [id, `req_${"z".repeat(24)}`, "req_000000000000000000000000"]) {
    const answer = await ask("GET", `/requests/${wrong}`);
    assert.deepEqual([answer.status, answer.json.error.code], [404, "unknown_request"], wrong);
  }
  assert.equal((await ask("GET", "/requests/nonsense")).status, 400);
  assert.equal((await (await signIn(gateway, bob.name))("GET", `/requests/${id}`)).status, 200);
});

test("lines are filtered by key, model and day, and paged from the newest", async (t) => {
  const { gateway, alice } = await makeAll(t);
  const ids = [
    await spend(gateway, alice.key),
    await spend(gateway, alice.key, "chat-alias"),
    await spend(gateway, alice.key),
  ];
  const ask = await signIn(gateway, alice.name);
  const references = async (query: string) =>
    (await ask("GET", `/lines?${query}`)).json.items.map((line: { reference: string }) => line.reference);
  assert.deepEqual(await references("model=chat-1"), [ids[2], ids[0]]);
  assert.deepEqual(await references("model=nothing"), []);
  assert.deepEqual(await references("key=key_000000000000000000"), []);
  assert.deepEqual((await references(`key=${alice.keyId}`)).length, 3);
  const today = new Date().toISOString().slice(0, 10);
  assert.equal((await references(`since=${today}&until=${today}`)).length, 4);
  assert.deepEqual(await references("until=2026-01-01"), []);
  assert.deepEqual(await references("since=2999-01-01"), []);
  const first = (await ask("GET", "/lines?limit=2")).json;
  assert.deepEqual(
    first.items.map((line: { reference: string }) => line.reference),
    [ids[2], ids[1]],
  );
  assert.deepEqual((await references(`before=${first.next}`))[0], ids[0]);
  for (const bad of [
    "since=2026-13-01",
    "since=2026-02-02&until=2026-02-01",
    "key=x",
    "before=-1",
    "limit=0",
    "order=oldest",
  ]) {
    assert.equal((await ask("GET", `/lines?${bad}`)).status, 400, bad);
  }
});

test("the catalog says what an account can use now, and why it cannot use the rest", async (t) => {
  const { gateway, alice } = await makeAll(t);
  const poor = await gateway.account({ usd: "0" });
  const refusals = async (name: string) => {
    const { items } = (await (await signIn(gateway, name))("GET", "/models")).json;
    const groups = new Map<string, { name: string; refusal: string | null }[]>(
      items.map((model: { name: string; groups: [] }) => [model.name, model.groups]),
    );
    return (model: string, group: string) => groups.get(model)?.find((one) => one.name === group)?.refusal;
  };
  const rich = await refusals(alice.name);
  assert.equal(rich("chat-1", "money"), null);
  assert.equal(rich("chat-1", "cards"), "no_entitlement");
  assert.equal(rich("pro-only", "money"), "not_in_plan");
  assert.equal(rich("other-family", "money"), undefined);
  assert.equal((await refusals(poor.name))("chat-1", "money"), "insufficient_balance");
  const ask = await signIn(gateway, alice.name);
  await gateway.store.changeAccount(alice.tag, { status: "suspended" });
  const { items } = (await ask("GET", "/models")).json;
  assert.ok(items.every(({ usable }: { usable: boolean }) => !usable));
});

test("each answer has the form that its route declares, and no further member", async (t) => {
  const { gateway, alice } = await makeAll(t);
  const id = await spend(gateway, alice.key);
  const ask = await signIn(gateway, alice.name);
  const explained = { key_id: alice.keyId, model: "no-such", protocol: "chat" };
  for (const [form, method, path, body] of [
    [OwnUsageShape, "GET", "/usage", undefined],
    [OwnLinesPage, "GET", "/lines", undefined],
    [OwnRequestShape, "GET", `/requests/${id}`, undefined],
    [OwnModelsShape, "GET", "/models", undefined],
    [ErrorsShape, "GET", "/errors", undefined],
    [OwnExplanationShape, "POST", "/explain", { ...explained, model: "chat-1" }],
    [OwnExplanationShape, "POST", "/explain", explained],
  ] as const) {
    const { status, json } = await ask(method, path, body);
    assert.equal(status, 200, path);
    const [, errors] = Schema.Errors(form, json);
    assert.deepEqual(errors, [], path);
  }
});
