/**
 * An upstream that keeps responses may write to the end of its limit when the gateway has closed the stream, and the client can
 * read all of it later. So what streams without a limit are sent as their limits is held from the beginning: all of them together
 * cannot get more than the account has (docs/decisions/stateful-upstreams-get-wrapped-ids.md).
 */
import assert from "node:assert/strict";
import type { IncomingMessage, RequestListener, ServerResponse } from "node:http";
import test, { type TestContext } from "node:test";
import type { GatewayHere, TestAccount } from "../../../rig/gateway.ts";
import { event, startBefore } from "../../../rig/own-upstream.ts";
import { ask, assertAtRest, type Fields, memoOf, usageLines } from "../../protocol/whole/asking.ts";
import { MAX_OUTPUT, pricedConfig } from "./rig.ts";

const OUTPUT_NANO = 15_000n;
const DEFAULT_OUTPUT = 4_096;

const OPENING = event({ type: "response.created", sequence_number: 0, response: { id: "resp_1", output: [] } });
const completed = (output: number) => {
  const usage = { input_tokens: 11, output_tokens: output, total_tokens: 11 + output };
  return event({
    type: "response.completed",
    sequence_number: 2,
    response: { id: "resp_1", status: "completed", output: [], usage },
  });
};

interface Scene {
  readonly here: GatewayHere;
  readonly account: TestAccount;
  /** What the upstream was asked for, and its streams, which stay open. */
  readonly asked: { readonly json: Fields; readonly response: ServerResponse }[];
  stream(fields?: Fields): Promise<Response>;
}

async function jsonOf(request: IncomingMessage): Promise<Fields> {
  const pieces: Buffer[] = [];
  for await (const piece of request) pieces.push(piece as Buffer);
  return JSON.parse(Buffer.concat(pieces).toString()) as Fields;
}

async function scene(t: TestContext, usd: string, stateful = true): Promise<Scene> {
  const asked: Scene["asked"] = [];
  const answers: RequestListener = async (request, response) => {
    asked.push({ json: await jsonOf(request), response });
    response.on("error", () => {});
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write(OPENING);
  };
  const models = { "responses-1": { default_output_tokens: DEFAULT_OUTPUT } };
  const here = await startBefore(t, answers, {
    config: (places) => pricedConfig(places, { models, upstreams: { "up-responses": { stateful } } }),
  });
  const account = await here.account({ usd });
  return {
    here,
    account,
    asked,
    stream: (fields = {}) =>
      ask(here, "responses", account.key, {
        ...{ model: "responses-1", stream: true, max_output_tokens: undefined, store: undefined },
        ...fields,
      }),
  };
}

const limitsOf = ({ asked }: Scene) => asked.map(({ json }) => json.max_output_tokens as number);
const heldOf = async ({ here, account }: Scene) => (await here.store.getAccount(account.tag))?.held ?? 0n;

async function end({ here, account, asked }: Scene, replies: readonly Response[]): Promise<void> {
  for (const { response } of asked) response.end(completed(10));
  for (const reply of replies) await reply.text();
  await assertAtRest(here, account);
}

test("many streams of a small balance: the sum of their limits costs no more than the balance", async (t) => {
  const one = await scene(t, "1.00");
  const replies: Response[] = [];
  for (let count = 0; count < 20; count++) replies.push(await one.stream());
  const limits = limitsOf(one);
  const sum = limits.reduce((a, b) => a + b, 0);
  assert.ok(BigInt(sum) * OUTPUT_NANO <= 1_000_000_000n, `${sum} tokens in ${limits.length} streams`);
  assert.equal(limits[0], MAX_OUTPUT, "half of the balance covers the longest possible output of the first stream");
  assert.ok(limits.length >= 4, `${limits.length} streams run at once`);
  assert.ok(limits.every((limit) => limit >= 16));
  assert.ok((await heldOf(one)) <= 1_000_000_000n);
  await end(one, replies);
});

test("streams that arrive at once share the balance, too", async (t) => {
  const one = await scene(t, "1.00");
  const replies = await Promise.all(Array.from({ length: 20 }, () => one.stream()));
  const sum = limitsOf(one).reduce((a, b) => a + b, 0);
  assert.ok(BigInt(sum) * OUTPUT_NANO <= 1_000_000_000n, `${sum} tokens`);
  await end(one, replies);
});

test("a limit that the funds lower is reported to the client, and the hold covers all of it", async (t) => {
  const one = await scene(t, "0.50");
  const reply = await one.stream();
  const [limit] = limitsOf(one) as [number];
  assert.ok(limit > 16_000 && limit < 19_000, `${limit}: the default and half of the rest`);
  assert.equal(reply.headers.get("x-tollgate-clamped"), `max_output_tokens=${limit}`);
  one.asked[0]?.response.end(completed(limit));
  await reply.text();
  await assertAtRest(one.here, one.account);
  const [line, ...more] = await usageLines(one.here, one.account);
  assert.deepEqual([line?.kind, memoOf(line).output, more], ["usage", limit, []]);
  assert.ok(line && line.amount <= BigInt(memoOf(line).hold as string));
});

test("with enough funds a stream may write all that its model can, and releases what it did not need", async (t) => {
  const one = await scene(t, "10");
  const reply = await one.stream();
  assert.deepEqual(limitsOf(one), [MAX_OUTPUT]);
  assert.equal(reply.headers.get("x-tollgate-clamped"), null);
  assert.ok((await heldOf(one)) >= BigInt(MAX_OUTPUT) * OUTPUT_NANO);
  await end(one, [reply]);
  assert.equal(await heldOf(one), 0n);
});

for (const [title, stateful, fields] of [
  ["a reply that is not to be kept", true, { store: false }],
  ["an upstream that keeps nothing", false, {}],
] as const) {
  test(`${title}: the hold grows in steps, as for every stream`, async (t) => {
    const one = await scene(t, "10", stateful);
    const reply = await one.stream(fields);
    assert.deepEqual(limitsOf(one), [MAX_OUTPUT]);
    assert.ok((await heldOf(one)) < BigInt(2 * DEFAULT_OUTPUT) * OUTPUT_NANO);
    await end(one, [reply]);
  });
}
