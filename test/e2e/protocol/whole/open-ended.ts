/**
 * Helpers of the tests of streams without an output limit: a small step, exact funds, and each protocol's truncation.
 */

import assert from "node:assert/strict";
import type { Protocol } from "../../../../src/values/protocol.ts";
import { each } from "../../../rig/config.ts";
import { type ConfigPlaces, type GatewayHere, type TestAccount, testConfig } from "../../../rig/gateway.ts";
import { bodyOf, type Fields, framesOf, LIMIT_FIELD, memoOf, usageLines } from "./asking.ts";

/** Output tokens of the first hold and of each step. */
export const STEP = 200;
/** In nano-dollars per token: the most expensive input is a one-hour cache write, at twice the price of input. */
export const PRICE = { inputHeld: 2_000n, output: 10_000n };

export function smallSteps(places: ConfigPlaces): string {
  return testConfig(places, ({ models }) => ({
    models: each(Object.keys(models), { default_output_tokens: STEP }),
  }));
}

/** A streamed body without an output limit, for this upstream's model. */
export function openEnded(client: Protocol, upstream: Protocol, fields: Fields = {}): Fields {
  return { model: `${upstream}-1`, stream: true, [LIMIT_FIELD[client]]: undefined, ...fields };
}

/** The hold of such a body with this many output tokens. */
export function holdOf(client: Protocol, fields: Fields, output: number): bigint {
  const bytes = Buffer.byteLength(JSON.stringify(bodyOf(client, fields)));
  return BigInt(Math.ceil(bytes / 3)) * PRICE.inputHeld + BigInt(output) * PRICE.output;
}

export async function accountWith(here: GatewayHere, nano: bigint): Promise<TestAccount> {
  const account = await here.account({ usd: "0" });
  await here.store.credit(account.tag, { id: `exact-${account.tag}`, amount: nano, kind: "topup", note: "test" });
  return account;
}

type Payload = Readonly<Record<string, unknown>>;

/** The payloads of a stream, without `[DONE]`. */
export function payloadsOf(text: string): Payload[] {
  return framesOf(text)
    .filter(({ data }) => data !== "" && data !== "[DONE]")
    .map(({ data }) => JSON.parse(data) as Payload);
}

/** All the text that the client received. */
export function saidIn(client: Protocol, text: string): string {
  const piece = (payload: Payload): string => {
    if (client === "chat") {
      const { choices } = payload as { choices: { delta: { content?: string } }[] };
      return choices[0]?.delta.content ?? "";
    }
    const { type, delta } = payload as { type: string; delta: string };
    return type === "response.output_text.delta" ? delta : "";
  };
  return payloadsOf(text).map(piece).join("");
}

interface TextItem {
  readonly status: string;
  readonly content: readonly { readonly text: string }[];
}

/** Asserts the end of a stream that was cut by an output limit, in the client's protocol, with everything closed. */
export function assertTruncated(client: Protocol, text: string): void {
  const payloads = payloadsOf(text);
  if (client === "chat") {
    const finishes = payloads.flatMap(({ choices }) =>
      (choices as { finish_reason: unknown }[]).map((c) => c.finish_reason),
    );
    assert.deepEqual(
      finishes.filter((finish) => finish !== null),
      ["length"],
    );
    assert.ok(text.endsWith("data: [DONE]\n\n"));
    return;
  }
  const types = payloads.map(({ type }) => String(type));
  assert.equal(types.at(-1), "response.incomplete");
  for (const type of ["response.output_text.done", "response.content_part.done", "response.output_item.done"]) {
    assert.equal(types.filter((one) => one === type).length, 1, type);
  }
  const numbers = payloads.map((payload) => payload.sequence_number as number);
  assert.deepEqual(
    numbers,
    numbers.map((_, index) => (numbers[0] as number) + index),
  );
  const response = payloads.at(-1)?.response as {
    status: string;
    incomplete_details: object;
    output: TextItem[];
    usage: { output_tokens: number };
  };
  assert.equal(response.status, "incomplete");
  assert.deepEqual(response.incomplete_details, { reason: "max_output_tokens" });
  const [item] = response.output;
  assert.deepEqual([item?.status, item?.content[0]?.text], ["incomplete", saidIn(client, text)]);
  assert.ok(response.usage.output_tokens > 0);
}

/** Asserts that the only charge is for what was delivered, within a hold of all the funds. @returns its amount. */
export async function assertBilledToTheEdge(
  here: GatewayHere,
  account: TestAccount,
  client: Protocol,
  text: string,
  funds: bigint,
): Promise<bigint> {
  const [line, ...more] = await usageLines(here, account);
  assert.deepEqual(more, []);
  const memo = memoOf(line);
  assert.deepEqual([line?.kind, memo.ended, memo.counted], ["usage", "brake", "estimate"]);
  assert.equal(memo.output, Math.ceil(Buffer.byteLength(saidIn(client, text)) / 4));
  assert.equal(memo.hold, String(funds));
  const state = await here.store.inspect(account.tag);
  assert.deepEqual([state?.account.balance, state?.account.held], [funds - (line?.amount ?? 0n), 0n]);
  assert.ok((line?.amount ?? 0n) <= funds && (state?.account.balance ?? -1n) >= 0n);
  return line?.amount ?? 0n;
}
