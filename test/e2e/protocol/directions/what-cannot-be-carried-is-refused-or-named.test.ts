/**
 * ARCHITECTURE.md promise 9 through the whole gateway: what a direction cannot carry is refused by name before an
 * upstream is called and before anything is held. What it may leave out is named in a header, counted, and refused if
 * the client asks for that.
 */
import assert from "node:assert/strict";
import test, { after, before } from "node:test";
import type { GatewayHere, TestAccount } from "../../../rig/gateway.ts";
import { usageLines } from "../whole/asking.ts";
import {
  askFor,
  CROSS_DIRECTIONS,
  DIRECTIONS,
  type Direction,
  type Json,
  post,
  recordOf,
  startDirections,
} from "./rig.ts";

let here: GatewayHere;
let account: TestAccount;

before(async () => {
  here = await startDirections();
  account = await here.account();
});

after(() => here.close());

type Case = readonly [client: Direction["client"], upstream: Direction["upstream"], fields: Json, named: string];

const PICTURE = { type: "image_url", image_url: { url: "ftp://pictures.example/one.png" } };
const item = (type: string) => ({ input: [{ role: "user", content: "hello" }, { type }] });

const REFUSED: readonly Case[] = [
  ["chat", "messages", { n: 2 }, "n"],
  ["chat", "messages", { logprobs: true }, "logprobs"],
  ["chat", "messages", { messages: [{ role: "user", content: [PICTURE] }] }, "image_url[].url"],
  ["chat", "messages", { messages: [{ role: "tool", tool_call_id: "a", content: "1" }] }, "messages[0].tool_call_id"],
  ["chat", "responses", { n: 2 }, "n"],
  ["chat", "responses", { modalities: ["text", "audio"], audio: { voice: "x", format: "wav" } }, "modalities"],
  ["messages", "chat", { inference_geo: "us" }, "inference_geo"],
  ["messages", "chat", { max_tokens: 0 }, "max_tokens"],
  ["messages", "responses", { inference_geo: "us" }, "inference_geo"],
  ["messages", "responses", { messages: [{ role: "user", content: [{ type: "hologram" }] }] }, "messages.0.content.0"],
  ["responses", "chat", item("program"), "input[1].type"],
  ["responses", "chat", item("compaction"), "input[1]"],
  ["responses", "messages", { include: ["message.output_text.logprobs"] }, "include"],
  ["responses", "messages", item("mcp_approval_request"), "input[1].type"],
];

for (const [client, upstream, fields, named] of REFUSED) {
  for (const stream of [false, true]) {
    test(`${client} to ${upstream}, stream ${stream}: ${JSON.stringify(fields).slice(0, 60)} is refused`, async () => {
      const asked = here.simulator.count;
      const reply = await post(here, client, account.key, askFor({ client, upstream }, { ...fields, stream }));
      assert.equal(reply.status, 400);
      assert.equal(reply.headers.get("x-tollgate-origin"), "gateway");
      const error = recordOf(((await reply.json()) as Json).error);
      assert.equal(error.type, "invalid_request_error");
      // Messages errors have no `param`: the member is at the beginning of the sentence.
      const found = client === "messages" ? String(error.message).split(": ")[0] : error.param;
      assert.ok(String(found).startsWith(named), `${found} names ${named}`);
      await assertFree(reply, asked);
    });
  }
}

/** Asserts that no upstream was called, nothing is held and nothing was charged. */
async function assertFree(reply: Response, asked: number): Promise<void> {
  await here.requestEnd(reply.headers.get("x-request-id") ?? "");
  assert.equal(here.simulator.count, asked);
  const state = await here.store.inspect(account.tag);
  assert.deepEqual([state?.holds, state?.account.held, state?.inFlight], [[], 0n, 0]);
  assert.deepEqual(await usageLines(here, account), []);
}

const LOST: readonly Case[] = [
  ["chat", "messages", { seed: 7, frequency_penalty: 0.5 }, "seed,frequency_penalty"],
  ["chat", "responses", { seed: 7, logit_bias: { "1": 2 } }, "seed,logit_bias"],
  ["messages", "chat", { top_k: 5, context_management: { edits: [{ type: "x" }] } }, "context_management,top_k"],
  ["messages", "responses", { top_k: 5 }, "top_k"],
  ["responses", "chat", { truncation: "auto" }, "truncation"],
  ["chat", "responses", { messages: [{ role: "user", content: "hello", name: "ann" }] }, "messages.name"],
  ["messages", "chat", { output_config: { task_budget: { type: "tokens", total: 9 } } }, "output_config.task_budget"],
  ["responses", "chat", { reasoning: { context: "all_turns" } }, "reasoning.context"],
  ["responses", "messages", { truncation: "auto", text: { verbosity: "low" } }, "truncation,text.verbosity"],
];

for (const [client, upstream, fields, names] of LOST) {
  const ask = askFor({ client, upstream }, fields);

  for (const stream of [false, true]) {
    test(`${client} to ${upstream}, stream ${stream}: ${names} is left out, named and counted`, async () => {
      const other = await here.account();
      const losses = await lossesOf({ client, upstream });
      const reply = await post(here, client, other.key, { ...ask, stream });
      await reply.text();
      assert.deepEqual([reply.status, reply.headers.get("x-tollgate-translation")], [200, `lossy; dropped=${names}`]);
      const more = names.split(",").map((name) => [name, (losses[name] ?? 0) + 1]);
      assert.deepEqual(await lossesOf({ client, upstream }), { ...losses, ...Object.fromEntries(more) });
    });
  }

  test(`${client} to ${upstream}: with x-tollgate-strict ${names.split(",")[0]} is refused`, async () => {
    const asked = here.simulator.count;
    const losses = await lossesOf({ client, upstream });
    const reply = await post(here, client, account.key, ask, { "x-tollgate-strict": "1" });
    assert.equal(reply.status, 400);
    const error = recordOf(((await reply.json()) as Json).error);
    assert.equal(error.cause, "untranslatable");
    const found = client === "messages" ? String(error.message).split(": ")[0] : error.param;
    assert.ok(names.split(",").includes(String(found)), `${found} is one of ${names}`);
    await assertFree(reply, asked);
    assert.deepEqual(await lossesOf({ client, upstream }), losses);
  });
}

test("what changes no answer is named separately, and a strict request proceeds without it", async () => {
  const ask = askFor({ client: "responses", upstream: "chat" }, { client_metadata: { a: "b" } });
  const reply = await post(here, "responses", account.key, ask, { "x-tollgate-strict": "1" });
  await reply.text();
  assert.deepEqual(
    [reply.status, reply.headers.get("x-tollgate-translation")],
    [200, "exact; ignored=client_metadata"],
  );
});

for (const direction of CROSS_DIRECTIONS) {
  test(`${direction.client} to ${direction.upstream}: a plain request is exact, strict or not`, async () => {
    const other = await here.account();
    const reply = await post(here, direction.client, other.key, askFor(direction), { "x-tollgate-strict": "1" });
    await reply.text();
    assert.deepEqual([reply.status, reply.headers.get("x-tollgate-translation")], [200, "exact"]);
  });
}

for (const direction of DIRECTIONS.filter(({ client, upstream }) => client === upstream)) {
  test(`${direction.client} to ${direction.upstream}: nothing is translated, so no header mentions it`, async () => {
    const other = await here.account();
    const reply = await post(here, direction.client, other.key, askFor(direction), { "x-tollgate-strict": "1" });
    await reply.text();
    assert.deepEqual([reply.status, reply.headers.get("x-tollgate-translation")], [200, null]);
  });
}

/** `tollgate_translation_loss_total` of a direction, by field. */
async function lossesOf({ client, upstream }: Direction): Promise<Record<string, number>> {
  const text = await (await fetch(`${here.adminUrl}/metrics`)).text();
  const labels = new RegExp(
    `^tollgate_translation_loss_total\\{from="${client}",to="${upstream}",field="([^"]+)"\\} (\\d+)$`,
    "gm",
  );
  return Object.fromEntries([...text.matchAll(labels)].map(([, field, count]) => [field, Number(count)]));
}
