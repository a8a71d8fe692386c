/**
 * The operator's rules in a whole gateway: the model's server receives what the rules of group, model and upstream
 * produce together, from the configuration file to the wire.
 */

import assert from "node:assert/strict";
import test, { after, before } from "node:test";
import type { Protocol } from "../../../../src/values/protocol.ts";
import { type ConfigPlaces, each } from "../../../rig/config.ts";
import { type GatewayHere, settingsOf, startGatewayHere, testConfig } from "../../../rig/gateway.ts";
import { ask, bodyOf, PROTOCOL_LIST } from "./asking.ts";

const SECRET = "header-canary-0123456789";

/** Rules at all three levels, each leaving its name. */
const GROUP = [
  { set: { user: "group", "metadata.from": "group" } },
  { default: { top_p: 0.1 } },
  { system: { text: "From the group." } },
  { header: { add: { "x-team": "group", "x-group": "1", "x-secret": SECRET } } },
];
const MODEL = [
  { drop: ["metadata.client"] },
  { set: { user: "model" } },
  { default: { top_p: 0.2, top_k: 5 } },
  { system: { text: "From the model." } },
  { header: { add: { "x-team": "model", "x-model": "1" }, remove: ["x-group"] } },
];
const UPSTREAM = [
  { set: { user: "upstream" } },
  { drop: ["top_p"] },
  { system: { text: "From the upstream.", at: "start" as const } },
  { header: { add: { "x-team": "upstream", "user-agent": "rule" }, remove: ["anthropic-beta"] } },
];

function ruledConfig(places: ConfigPlaces): string {
  return testConfig(places, ({ upstreams }) => ({
    upstreams: each(Object.keys(upstreams), {
      pass_members: ["x_new"],
      headers: { "x-last": "upstream-headers" },
      rules: UPSTREAM,
    }),
    models: each(["chat-1", "messages-1", "responses-1"], { rules: MODEL }),
    groups: { money: { rules: GROUP } },
  }));
}

let here: GatewayHere;
before(async () => {
  here = await startGatewayHere({ config: ruledConfig });
});
after(() => here.close());

const SYSTEM = "From the upstream.\\n\\nBe brief.\\n\\nFrom the group.\\n\\nFrom the model.";

/** The client's own system text with the rules' text around it, as each protocol writes it. */
const BODIES: Readonly<Record<Protocol, (system: string) => string>> = {
  chat: (system) => `"messages": [ {"role":"system","content":"${system}"},{"role":"user","content":"h\\u00e9"} ]`,
  messages: (system) => `"system" :"${system}", "messages":[{"role":"user","content":"h\\u00e9"}]`,
  responses: (system) => `"instructions": "${system}" , "input":"h\\u00e9", "store":false`,
};
const LIMITS = { chat: "max_tokens", messages: "max_tokens", responses: "max_output_tokens" } as const;
const ODD = `"seed" : 9007199254740993,\t"x_new": {"b":1, "a":-0, "u":"\\ud83d\\ude00"}`;

function bodyText(protocol: Protocol, system: string, metadata: string, rest: string): string {
  const limit = `"${LIMITS[protocol]}": 40`;
  return `{ ${BODIES[protocol](system)}, ${ODD}, "model":"${protocol}-1",${limit}, "metadata":${metadata}${rest} }`;
}

function jsonSeen({ simulator }: GatewayHere): Record<string, unknown> {
  return simulator.requests.at(-1)?.json as Record<string, unknown>;
}

function headersSeen({ simulator }: GatewayHere = here): Map<string, string> {
  const flat = simulator.requests.at(-1)?.headers ?? [];
  const seen = new Map<string, string>();
  for (let i = 0; i < flat.length; i += 2) seen.set((flat[i] as string).toLowerCase(), flat[i + 1] as string);
  return seen;
}

for (const protocol of PROTOCOL_LIST) {
  test(`${protocol}: rules of group, model and upstream apply in this order; every other byte stays as the client wrote it`, async () => {
    const { key } = await here.account();
    const raw = bodyText(protocol, "Be brief.", '{"client" :1, "kept":2}', ', "user":"client"');
    const reply = await ask(here, protocol, key, {}, { raw });
    assert.equal(reply.status, 200, await reply.text());
    const expected = bodyText(protocol, SYSTEM, '{"kept":2,"from":"group"}', ', "user":"upstream","top_k":5');
    assert.equal(here.simulator.requests.at(-1)?.body.toString(), expected);
  });

  test(`${protocol}: headers of all three levels are sent, and the upstream's own win`, async () => {
    const { key } = await here.account();
    const reply = await ask(here, protocol, key, {}, { headers: { "anthropic-beta": "b-1", "x-team": "client" } });
    const text = await reply.text();
    assert.equal(reply.status, 200);
    const seen = headersSeen();
    assert.equal(seen.get("x-team"), "upstream");
    assert.equal(seen.get("x-model"), "1");
    assert.equal(seen.get("x-secret"), SECRET);
    assert.equal(seen.get("x-last"), "upstream-headers");
    assert.equal(seen.get("user-agent"), "rule");
    assert.equal(seen.has("x-group"), false);
    assert.equal(seen.has("anthropic-beta"), false);
    assert.ok(!text.includes(SECRET) && !JSON.stringify([...reply.headers]).includes(SECRET));
  });
}

test("keys of another group, and other models, get only their own rules", async () => {
  const { key } = await here.account({ group: "limited-money" });
  assert.equal((await ask(here, "chat", key, { model: "chat-alias" })).status, 200);
  const json = jsonSeen(here);
  assert.equal(json.user, "upstream");
  assert.equal(json.top_k, undefined);
  assert.equal(json.metadata, undefined);
  assert.deepEqual((json.messages as unknown[])[0], { role: "system", content: "From the upstream." });
  assert.equal(headersSeen().get("x-team"), "upstream");
  assert.equal(headersSeen().has("x-secret"), false);
});

test("a stream gets the rules too, and the gateway's own splices stay", async () => {
  const { key } = await here.account();
  const reply = await ask(here, "chat", key, { stream: true });
  assert.match(await reply.text(), /data: \[DONE\]/);
  const json = jsonSeen(here);
  assert.deepEqual(json.stream_options, { include_usage: true });
  assert.equal(json.user, "upstream");
});

test("a secret in a header rule appears in no log line and not when settings are printed", async () => {
  assert.ok(!JSON.stringify(here.log).includes(SECRET));
  const group = here.settings.catalog.groups.get("money");
  assert.ok(JSON.stringify(group?.rules).includes("x-secret"));
  assert.ok(!JSON.stringify(group?.rules).includes(SECRET));
});

test("a reload changes rules and configured headers from the next request on", async () => {
  const gateway = await startGatewayHere({ config: ruledConfig });
  try {
    const { key } = await gateway.account();
    const user = async () => {
      assert.equal((await ask(gateway, "chat", key, bodyOf("chat"))).status, 200);
      return jsonSeen(gateway).user;
    };
    assert.equal(await user(), "upstream");
    const text = ruledConfig({ upstreamUrl: gateway.simulator.url, dir: "unused" });
    const version = gateway.settings.catalog.version;
    const next = settingsOf(
      text.replaceAll("{set: {user: upstream}}", "{set: {user: reloaded}}").replaceAll("upstream-headers", "changed"),
    );
    assert.notEqual(next.catalog.version, version, "the ledger lines distinguish the two");
    gateway.gateway.reload(next);
    assert.equal(await user(), "reloaded");
    assert.equal(headersSeen(gateway).get("x-last"), "changed");
  } finally {
    await gateway.close();
  }
});
