/**
 * An application that continues with half a message (docs/decisions/references-carry-what-they-name.md, *A stream that
 * broke off*): the AI SDK's next request refers to what it received of a stream that its user stopped, or that its
 * server or the gateway broke off.
 */
import assert from "node:assert/strict";
import test, { after, before } from "node:test";
import { createOpenAI } from "@ai-sdk/openai";
import { type ModelMessage, streamText } from "ai";
import type { Behavior } from "../../../../src/simulator/server.ts";
import type { GatewayHere, TestAccount } from "../../../rig/gateway.ts";
import { modelOn, PROTOCOL_LIST, seenBody, startDirections } from "../directions/rig.ts";
import { ask, assertAtRest } from "../whole/asking.ts";

let here: GatewayHere;
before(async () => {
  here = await startDirections();
});
after(() => here.close());

type Part = { readonly type: string; text?: string; providerOptions: unknown };

/** What an application keeps of a stream: every part that has begun, with the ids that the SDK gave it. */
async function heard(account: TestAccount, model: string, limit: number | undefined, stopAfter: number) {
  const leaving = new AbortController();
  const openai = createOpenAI({ baseURL: `${here.url}/v1`, apiKey: account.key });
  const running = streamText({
    model: openai.responses(model),
    prompt: "Tell me.",
    maxRetries: 0,
    abortSignal: leaving.signal,
    onError: () => {},
    ...(limit === undefined ? {} : { maxOutputTokens: limit }),
  });
  const parts = new Map<string, Part>();
  let heardChars = 0;
  for await (const part of running.fullStream) {
    if (part.type === "text-start") {
      parts.set(part.id, { type: "text", text: "", providerOptions: part.providerMetadata });
    } else if (part.type === "reasoning-start") {
      parts.set(part.id, { type: "reasoning", text: "", providerOptions: part.providerMetadata });
    } else if (part.type === "text-delta") {
      const known = parts.get(part.id);
      if (known) known.text += part.text;
      heardChars += part.text.length;
      if (heardChars >= stopAfter) leaving.abort();
    }
  }
  return [...parts.values()];
}

async function goOn(account: TestAccount, model: string, content: readonly Part[]): Promise<string> {
  here.simulator.clearPrograms();
  here.simulator.program({ text: "Going on." });
  const openai = createOpenAI({ baseURL: `${here.url}/v1`, apiKey: account.key });
  const messages = [
    { role: "user", content: "Tell me." },
    { role: "assistant", content },
    { role: "user", content: "Go on." },
  ] as unknown as ModelMessage[];
  const failures: unknown[] = [];
  const running = streamText({
    model: openai.responses(model),
    messages,
    maxRetries: 0,
    onError: ({ error }) => void failures.push(error),
  });
  assert.equal(await running.text, "Going on.", JSON.stringify(failures));
  return JSON.stringify(seenBody(here.simulator.requests.at(-1) as never));
}

const TEXT = "Once upon a time there was a roof. ".repeat(20);

for (const upstream of PROTOCOL_LIST) {
  const model = modelOn(upstream);
  for (const [limit, how] of [
    [undefined, "without a limit"],
    [4_000, "with a limit"],
  ] as const) {
    test(`${upstream} upstream, ${how}: a stream broken off by its server in mid-text`, async () => {
      const account = await here.account();
      const broken: Behavior = { thinking: "hm", text: TEXT, deltaChars: 40, fault: { resetAfterEvents: 14 } };
      here.simulator.program(broken, { times: 3 });
      const parts = await heard(account, model, limit, Number.POSITIVE_INFINITY);
      const said = parts.find(({ type, text }) => type === "text" && text);
      assert.ok(said?.text, "some of the text was received");
      assert.ok(JSON.stringify(parts).includes("rs_gw1."), "the carrier item with the sealed content was received");
      const sent = await goOn(account, model, parts);
      assert.ok(!sent.includes("gw1.") && !sent.includes("item_reference"));
      // A text of which the gateway keeps nothing, because its bytes pass unchanged, is left out.
      const isKept = upstream !== "responses" || limit === undefined;
      assert.equal(sent.includes(said.text.slice(0, 40)), isKept);
      await assertAtRest(here, account);
    });

    test(`${upstream} upstream, ${how}: a stream stopped by its user in mid-text`, async () => {
      const account = await here.account();
      here.simulator.program({ thinking: "hm", text: TEXT, deltaChars: 40, fault: { stallAfterEvents: 14 } });
      const parts = await heard(account, model, limit, 60);
      assert.ok(
        parts.some(({ type }) => type === "text") && !JSON.stringify(parts).includes("gw1."),
        "no carrier item was received",
      );
      const sent = await goOn(account, model, parts);
      assert.ok(!sent.includes("gw1.") && !sent.includes("item_reference") && sent.includes("Tell me."));
    });
  }

  test(`${upstream} upstream: the answer says what was left out, and a strict client is refused`, async () => {
    const { key } = await here.account();
    const input = [
      { role: "user", content: "x" },
      { type: "item_reference", id: "msg_never" },
      { role: "user", content: "y" },
    ];
    const fields = { store: undefined, model, input };
    const reply = await ask(here, "responses", key, fields);
    assert.equal(reply.status, 200);
    assert.match(reply.headers.get("x-tollgate-translation") ?? "", /^lossy; dropped=input\.item_reference/);
    const strict = await ask(here, "responses", key, fields, { headers: { "x-tollgate-strict": "1" } });
    assert.equal(strict.status, 400);
  });
}
