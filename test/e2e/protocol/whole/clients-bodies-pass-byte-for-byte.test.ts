/**
 * ARCHITECTURE.md promise 6: the bodies of real clients reach a server of their protocol byte for byte, and nothing is
 * refused, left out or named. The bodies are those of test/golden/clients, and those of real clients in
 * test/golden/requests.
 */
import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { basename } from "node:path";
import test, { after, before } from "node:test";
import { PROTOCOLS, type Protocol } from "../../../../src/values/protocol.ts";
import {
  type ConfigPlaces,
  type GatewayHere,
  startGatewayHere,
  type TestAccount,
  testConfig,
} from "../../../rig/gateway.ts";
import { assertAtRest, PROTOCOL_LIST } from "./asking.ts";

/** Models with prices for what these clients request: Codex offers a search in each request. */
function config(places: ConfigPlaces): string {
  const unit = { input: "1", output: "10" };
  const price = { ...unit, tiers: { flex: unit }, tools: { web_search: "0.01" } };
  const model = { plans: ["free"], price, context_tokens: 200000, max_output_tokens: 128000 };
  const models = PROTOCOL_LIST.map(
    (protocol) => [`${protocol}-clients`, { ...model, routes: [{ upstream: `up-${protocol}` }] }] as const,
  );
  return testConfig(places, { models: Object.fromEntries(models) });
}

let here: GatewayHere;
let account: TestAccount;
before(async () => {
  here = await startGatewayHere({ config });
  account = await here.account({ usd: "100" });
});
after(() => here.close());

interface Golden {
  readonly name: string;
  readonly protocol: Protocol;
  readonly body: string;
}

const OWN: readonly Golden[] = globSync("test/golden/clients/*.json").map((file) => {
  const [client, protocol] = basename(file, ".json").split(".") as [string, Protocol];
  return { name: client, protocol, body: readFileSync(file, "utf8") };
});

/** The gateway splices `store` in these goldens, so they set it to false here; the rest is unchanged. */
const TRANSLATED: readonly Golden[] = PROTOCOL_LIST.flatMap((protocol) =>
  globSync(`test/golden/requests/${protocol}/{claude-code,codex,opencode,ai-sdk}*.json`)
    .filter((file) => !file.includes(".expected."))
    .map((file) => {
      const { body } = JSON.parse(readFileSync(file, "utf8")) as { body: Record<string, unknown> };
      const stored = protocol === "messages" ? {} : { store: false };
      return { name: basename(file, ".json"), protocol, body: JSON.stringify({ ...body, ...stored }) };
    }),
);

const GOLDENS = [...OWN, ...TRANSLATED];

test("there are bodies of each protocol", () => {
  for (const protocol of PROTOCOL_LIST)
    assert.ok(GOLDENS.filter((one) => one.protocol === protocol).length >= 4, protocol);
});

for (const { name, protocol, body } of GOLDENS) {
  test(`${name} on ${protocol}`, async () => {
    const sent = body.replace(/("model"\s*:\s*)"big-1"/, `$1"${protocol}-clients"`);
    assert.notEqual(sent, body);
    const reply = await fetch(here.url + PROTOCOLS[protocol].path, {
      method: "POST",
      headers: {
        authorization: `Bearer ${account.key}`,
        "content-type": "application/json",
        "x-tollgate-strict": "1",
      },
      body: sent,
    });
    const text = await reply.text();
    assert.equal(reply.status, 200, text);
    assert.equal(reply.headers.get("x-tollgate-translation"), null);
    assert.equal(reply.headers.get("x-tollgate-clamped"), null);
    assert.equal(here.simulator.requests.at(-1)?.body.toString(), limited(protocol, sent));
    await assertAtRest(here, account);
  });
}

/** A request without a limit gets one: a stream the model's maximum, a whole reply the default. */
function limited(protocol: Protocol, sent: string): string {
  const json = JSON.parse(sent) as Record<string, unknown>;
  const { limitFields } = PROTOCOLS[protocol];
  if (limitFields.some((field) => json[field] !== undefined)) return sent;
  return sent.replace(/\}(\s*)$/, `,"${limitFields[0]}":${json.stream === true ? 128_000 : 8_192}}$1`);
}
