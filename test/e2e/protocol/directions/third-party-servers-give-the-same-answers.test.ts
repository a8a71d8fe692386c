/**
 * The recorded requests of real clients (recorded.ts) against model servers of third parties: aimock
 * (test/rig/aimock.ts), and LiteLLM's proxy where it is installed (test/rig/litellm.ts). Each goes directly, by the
 * client's official SDK, and through the gateway in each direction. The SDK parses both answers to the same result, and
 * the server has read the same conversation, except for the differences listed here.
 */
import assert from "node:assert/strict";
import test, { after, before } from "node:test";
import type { Protocol } from "../../../../src/values/protocol.ts";
import { type Heard, type Said, startAimock, type ThirdParty } from "../../../rig/aimock.ts";
import { type GatewayHere, startGatewayHere, type TestAccount } from "../../../rig/gateway.ts";
import { askedServers, litellmProgram, startLitellm } from "../../../rig/litellm.ts";
import { RECORDED, RECORDED_BY, SINGLE } from "./recorded.ts";
import { directionsConfig, type Json, modelOn, PROTOCOL_LIST, recordOf } from "./rig.ts";
import { ASK } from "./sdk-answers.ts";

/** A server, and a gateway that has it as every upstream. */
interface Place {
  readonly server: ThirdParty;
  readonly here: GatewayHere;
  readonly account: TestAccount;
}

async function startPlace(server: ThirdParty): Promise<Place> {
  const config = (places: Parameters<ReturnType<typeof directionsConfig>>[0]) =>
    directionsConfig()({ ...places, upstreamUrl: `${server.url}/v1` }).replace(/canary-of-[a-z-]+/g, server.key);
  const here = await startGatewayHere({ config });
  return { server, here, account: await here.account({ usd: "1000", tag: RECORDED_BY }) };
}

let own: Place;
let litellm: Place | undefined;
before(async () => {
  own = await startPlace(await startAimock());
  const program = litellmProgram();
  litellm = program === undefined ? undefined : await startPlace(await startLitellm(program));
});
after(async () => {
  for (const place of [own, litellm]) {
    await place?.here.close();
    await place?.server.stop();
  }
});

/** JSON, because some of the requests demand it. */
const TEXT = '{"said":"R\u00f6\u00f6f and archive are well \u{1f3e0}."}';
const USAGE = { input: 70, output: 30 };
const REASONING = "First both.";

const plain: Said = { text: TEXT, reasoning: REASONING, calls: [], finish: "stop", usage: USAGE };
const callsOf = (name: string) =>
  ["roof", "archive"].map((part, index) => ({ id: `call_0${index}`, name, input: { part, "wide number": 1e21 } }));

/** What the server answers to each request. */
const ANSWERS: Readonly<Record<string, (tool: string | undefined) => Said | undefined>> = {
  "words and reasoning": () => plain,
  "two calls": (tool) => (tool === undefined ? undefined : { ...plain, calls: callsOf(tool), finish: "tool_calls" }),
  "a reply that is cut": () => ({ ...plain, finish: "length" }),
  "words alone": () => ({ ...plain, reasoning: undefined }),
};

/**
 * Parts of a request that aimock ignores when it is sent directly, but reads when the gateway translates them to
 * another protocol: there the server reads more, and never less.
 */
const HEARS_MORE: ReadonlyMap<string, string> = new Map([
  ["claude-code 2.1.330", "system turns within a conversation, without the line of attribution"],
  ["claude-code-tui", "the same, and images of tool results"],
  ["ai-sdk-anthropic", "a document"],
  ["ai-sdk-openai 4.0.118", "what references name, on its own protocol too"],
  ["codex 0.169.0", "tools in namespaces"],
  ["codex-exec", "tools in namespaces, freeform ones and their calls"],
  ["instructor 1.17.0", "that a result is a failure"],
  ["openai-sdk", "that JSON is wanted, which messages servers are told in words"],
]);
const ATTRIBUTION = /x-anthropic-billing-header:[^;]*;[^;]*;[^;]*;/;

/**
 * LiteLLM 1.106.2 does not begin the parts of its responses streams, so the official SDK's accumulator fails on them,
 * directly and through the gateway, which changes no byte of its own protocol. Clients of other protocols get such
 * streams complete.
 */
const LITELLM_STREAMS = /missing content at index 0/;

/** A function of the client's own that the request offers, if any. */
function offered(body: Json): string | undefined {
  for (const tool of (body.tools ?? []) as Json[]) {
    const { type = "function", name, function: inner } = tool as { type?: string; name?: string; function?: Json };
    if (type === "function") return String(inner?.name ?? name);
  }
  return undefined;
}

/** Whether the request refers to earlier items instead of including them. */
function refers(body: Json): boolean {
  return Array.isArray(body.input) && body.input.some(({ type }) => type === "item_reference");
}

/** What the first of the recorded references names, as the server reads it. */
const REFERRED_TO = "Letmesee.";

/**
 * Whether a client is shown the reasoning that this server sends unasked. It is not, on another protocol, if the client
 * has asked for none, or if it is a responses client of a chat server and has not asked for summaries.
 */
function shows(client: Protocol, upstream: Protocol, body: Json): boolean {
  if (client === upstream || client === "chat" || upstream === "messages") return true;
  if (client === "messages") {
    const { type, display } = recordOf(body.thinking ?? {});
    return type !== "disabled" && display !== "omitted";
  }
  if (upstream === "responses") return true;
  return body.reasoning !== undefined && recordOf(body.reasoning).summary !== undefined;
}

function assertHeard(heard: Heard, straight: Heard, more: boolean): void {
  if (!more) {
    assert.deepEqual(heard, straight);
    return;
  }
  assert.ok(heard.system.includes(straight.system.replace(ATTRIBUTION, "")), `${heard.system}: ${straight.system}`);
  assert.deepEqual(
    heard.tools.filter((name) => straight.tools.includes(name)),
    straight.tools,
  );
  const left = [...heard.turns];
  for (const [kind, ...words] of straight.turns) {
    const at = left.findIndex(([other, ...all]) => other === kind && words.every((one, i) => all[i]?.includes(one)));
    assert.ok(at >= 0, `${kind} ${words} is not in ${JSON.stringify(heard.turns)}`);
    left.splice(0, at + 1);
  }
}

test(`the third-party servers in use are ${askedServers()}`, async () => {
  if (!litellm) return;
  const { server } = litellm;
  server.say(plain);
  await assert.rejects(
    ASK.responses(server, { model: "m", input: "hi" }, true),
    LITELLM_STREAMS,
    "LiteLLM still has this defect; remove the exception if it is fixed",
  );
});

test("the requests of which a server reads more are among the recorded ones", () => {
  const names = new Set([...RECORDED, ...SINGLE].map(({ name }) => name));
  for (const name of HEARS_MORE.keys()) assert.ok(names.has(name), name);
});

for (const { name, protocol, steps } of [...RECORDED, ...SINGLE]) {
  for (const [index, request] of steps.entries()) {
    const { stream: _, stream_options: __, ...body } = request;
    for (const [what, answer] of Object.entries(ANSWERS)) {
      const said = answer(offered(body));
      if (said === undefined) continue;
      const step = `${name}, ${protocol}, step ${index + 1} of ${steps.length}: ${what}`;
      test(step, async () => {
        const { server, here, account } = own;
        server.say(said);
        for (const stream of [false, true]) {
          const asked = await ASK[protocol](server, { ...body, model: "m" }, stream);
          const straight = server.heard();
          assert.deepEqual([asked.text, asked.calls], [said.text, said.calls]);
          assert.deepEqual(asked.usage, [USAGE.input, USAGE.output]);
          for (const upstream of PROTOCOL_LIST) {
            const named = { ...body, model: modelOn(upstream) };
            const told = await ASK[protocol]({ url: here.url, key: account.key }, named, stream);
            const reasoning = shows(protocol, upstream, body) ? asked.reasoning : "";
            assert.deepEqual(told, { ...asked, reasoning }, `${upstream}, ${stream ? "streamed" : "whole"}`);
            const more = HEARS_MORE.has(name) && (upstream !== protocol || refers(body));
            assertHeard(server.heard(), straight, more);
            if (refers(body))
              assert.deepEqual(server.heard().turns[1], ["assistant", REFERRED_TO], "the referenced item is sent");
          }
        }
      });
      if (litellmProgram() === undefined) continue;
      test(`LiteLLM's proxy: ${step}`, async () => {
        assert.ok(litellm);
        const { server, here, account } = litellm;
        server.say(said);
        const whole = await ASK[protocol](server, { ...body, model: "m" }, false);
        assert.deepEqual([whole.text, whole.calls], [said.text, said.calls]);
        for (const stream of [false, true]) {
          for (const upstream of PROTOCOL_LIST) {
            const named = { ...body, model: modelOn(upstream) };
            const told = ASK[protocol]({ url: here.url, key: account.key }, named, stream);
            const reasoning = shows(protocol, upstream, body) ? whole.reasoning : "";
            if (stream && protocol === "responses" && upstream === "responses")
              await assert.rejects(told, LITELLM_STREAMS);
            else assert.deepEqual(await told, { ...whole, reasoning }, `${upstream}, ${stream ? "streamed" : "whole"}`);
          }
        }
      });
    }
  }
}

test("if the server counts nothing, the client gets an estimate and not zero", async () => {
  const { server, here, account } = own;
  server.say({ ...plain, usage: undefined });
  for (const { protocol, steps } of RECORDED) {
    const { stream: _, stream_options: __, ...body } = steps[0] as Json;
    for (const upstream of PROTOCOL_LIST) {
      for (const stream of [false, true]) {
        const named = { ...body, model: modelOn(upstream) };
        const { usage } = await ASK[protocol]({ url: here.url, key: account.key }, named, stream);
        assert.ok(usage[0] > 0 && usage[1] > 0, `${upstream}: ${usage}`);
      }
    }
  }
});
