/**
 * Operator rules that remove text, or add text for the model, change the count; members that they set apply only to the
 * model path.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { startGatewayHere, testConfig } from "../../../rig/gateway.ts";
import { post, sendJson, startUpstream } from "./side-rig.ts";

const RULES = [
  { drop: ["context_management"] },
  { set: { temperature: 0.5 } },
  { system: { text: "Be brief.", at: "end" as const } },
  { header: { add: { "x-team": "blue" } } },
  { strip_attribution: true },
];

/** What Claude Code puts in front of the system text. */
const ATTRIBUTION = "x-anthropic-billing-header: cc_version=2.1; cch=ab12;";

test("dropped members, system text and headers apply to a count, members that are set do not", async (t) => {
  const upstream = await startUpstream((_seen, res) => sendJson(res, 200, { input_tokens: 3 }));
  const here = await startGatewayHere({
    config: ({ dir }) =>
      testConfig({ upstreamUrl: upstream.url, dir }, { upstreams: { "up-messages": { rules: RULES } } }),
  });
  t.after(async () => {
    await here.close();
    await upstream.close();
  });
  const { key } = await here.account();
  const messages = [{ role: "user", content: "hello" }];
  const system = [ATTRIBUTION, "You help."].map((text) => ({ type: "text", text }));
  const body = { model: "messages-1", system, messages, context_management: { edits: [] } };
  const reply = await post(`${here.url}/v1/messages/count_tokens`, key, body);
  assert.equal(reply.status, 200);
  const [seen] = upstream.seen;
  assert.deepEqual(Object.keys(seen?.json ?? {}).sort(), ["messages", "model", "system"]);
  assert.match(JSON.stringify(seen?.json.system), /You help\..*Be brief\./);
  assert.doesNotMatch(JSON.stringify(seen?.json.system), /billing-header/);
  assert.equal(seen?.headers["x-team"], "blue");
});
