/** Helpers of the billing tests: a catalog at 3 and 15 USD per million tokens, accounts, and ledger lines. */
import assert from "node:assert/strict";
import type { LedgerLine } from "../../../../src/store/records.ts";
import { formatUsd } from "../../../../src/values/money.ts";
import type { Protocol } from "../../../../src/values/protocol.ts";
import { baseConfig, type Changes, type ConfigPlaces, changed, each, yamlOf } from "../../../rig/config.ts";
import type { GatewayHere, TestAccount } from "../../../rig/gateway.ts";
import {
  ask,
  assertAtRest,
  type Fields,
  LIMIT_FIELD,
  type Memo,
  memoOf,
  usageLines,
} from "../../protocol/whole/asking.ts";

/** Models with 400,000 tokens of context and 32,000 of output, one per protocol. */
export function pricedConfig(places: ConfigPlaces, change: Changes = {}): string {
  const base = baseConfig(places);
  const price = { input: "3", cached_input: undefined, cache_write: undefined, output: "15" };
  const models = each(Object.keys(base.models), { price, context_tokens: 400000 });
  return yamlOf(changed(changed(base, { models }), change));
}

export const MAX_OUTPUT = 32_000;

/** Every pair of client and upstream protocol. */
export const DIRECTIONS: readonly (readonly [client: Protocol, upstream: Protocol])[] = (
  ["chat", "messages", "responses"] as const
).flatMap((client) => (["chat", "messages", "responses"] as const).map((upstream) => [client, upstream] as const));

/** A body for this upstream's model with this output limit; undefined: no limit. */
export function limited(client: Protocol, upstream: Protocol, limit: number | undefined, fields: Fields = {}): Fields {
  return { model: `${upstream}-1`, [LIMIT_FIELD[client]]: limit, ...fields };
}

/** The last body that the upstream received. */
export function sentUpstream(here: GatewayHere): Fields {
  const seen = here.simulator.requests.at(-1)?.json as Fields | undefined;
  assert.ok(seen);
  return seen;
}

export function limitSent(here: GatewayHere): unknown {
  const sent = sentUpstream(here);
  return sent.max_completion_tokens ?? sent.max_tokens ?? sent.max_output_tokens;
}

export interface Billed {
  readonly usd: string;
  readonly absorbedUsd: string;
  readonly memo: Memo;
  readonly line: LedgerLine;
}

/** Waits until the account has no running request. @returns its charge, and what was absorbed in addition. */
export async function billed(here: GatewayHere, account: TestAccount): Promise<Billed> {
  await assertAtRest(here, account);
  const lines = await usageLines(here, account);
  const [line] = lines.filter(({ kind }) => kind === "usage");
  assert.ok(line, `no charge among ${lines.length} lines`);
  const absorbed = lines.filter(({ kind }) => kind === "absorbed").reduce((sum, { amount }) => sum + amount, 0n);
  return { usd: formatUsd(line.amount), absorbedUsd: formatUsd(absorbed), memo: memoOf(line), line };
}

/** Sends a request and reads the answer to its end. */
export async function asked(
  here: GatewayHere,
  client: Protocol,
  account: TestAccount,
  fields: Fields,
): Promise<{ readonly reply: Response; readonly text: string }> {
  const reply = await ask(here, client, account.key, fields);
  const text = await reply.text();
  assert.equal(reply.status, 200, text);
  return { reply, text };
}
