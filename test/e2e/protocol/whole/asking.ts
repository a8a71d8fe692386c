/** Requests to a whole gateway, and what must be true of every account afterwards. */
import assert from "node:assert/strict";
import type { LedgerLine } from "../../../../src/store/records.ts";
import { PROTOCOLS, type Protocol } from "../../../../src/values/protocol.ts";
import { type Memo, worthOf } from "../../../endurance/judge/line.ts";
import type { GatewayHere, TestAccount } from "../../../rig/gateway.ts";

export type { Memo };
export type Fields = Readonly<Record<string, unknown>>;

export const PROTOCOL_LIST = ["chat", "messages", "responses"] as const satisfies readonly Protocol[];

export function pathOf(protocol: Protocol): string {
  return PROTOCOLS[protocol].path;
}

/** The member of the output limit as these tests write it. */
export const LIMIT_FIELD = { chat: "max_tokens", messages: "max_tokens", responses: "max_output_tokens" } as const;

/** A small valid body for the protocol's own model; a field given as undefined is left out. */
export function bodyOf(protocol: Protocol, fields: Fields = {}): Fields {
  const turn = [{ role: "user", content: "hello" }];
  const conversation = protocol === "responses" ? { input: "hello", store: false } : { messages: turn };
  return { model: `${protocol}-1`, [LIMIT_FIELD[protocol]]: 400, ...conversation, ...fields };
}

export interface AskOptions {
  readonly headers?: Record<string, string>;
  readonly signal?: AbortSignal;
  /** Sent unchanged instead of the fields' JSON. */
  readonly raw?: string | Uint8Array<ArrayBuffer>;
  readonly path?: string;
}

/** Ids of requests that may still be settling, by the gateway's address. */
const unfinished = new Map<string, Set<string>>();

/** Posts a request with this key (none if undefined). */
export async function ask(
  here: Pick<GatewayHere, "url">,
  protocol: Protocol,
  key: string | undefined,
  fields: Fields = {},
  { headers = {}, signal, raw, path }: AskOptions = {},
): Promise<Response> {
  const reply = await fetch(here.url + (path ?? pathOf(protocol)), {
    method: "POST",
    headers: {
      "content-type": "application/json",
      ...(key === undefined ? {} : { authorization: `Bearer ${key}` }),
      ...headers,
    },
    body: raw ?? JSON.stringify(bodyOf(protocol, fields)),
    ...(signal ? { signal } : {}),
  });
  const id = reply.headers.get("x-request-id");
  if (id !== null && reply.headers.get("content-type")?.startsWith("text/html") === false) {
    const ids = unfinished.get(here.url) ?? new Set();
    unfinished.set(here.url, ids.add(id));
  }
  return reply;
}

/** The error object of a refusal, in any protocol. */
export interface ErrorShape {
  readonly type: string;
  readonly message: string;
  readonly param?: string | null;
  readonly code?: string;
  readonly cause: string;
  readonly remedy: string;
}

export async function errorOf(reply: Response): Promise<ErrorShape> {
  const body = (await reply.json()) as { error: ErrorShape };
  return body.error;
}

/**
 * Waits until every request that `ask` got an answer to has ended, then asserts that nothing of it is left in the
 * account. Streams must have been read or closed before.
 */
export async function assertAtRest(here: GatewayHere, account: Pick<TestAccount, "tag">): Promise<void> {
  const ids = unfinished.get(here.url) ?? new Set();
  unfinished.delete(here.url);
  for (const id of ids) await here.requestEnd(id);
  const state = await here.store.inspect(account.tag);
  assert.equal(state?.account.held, 0n);
  assert.deepEqual(state?.holds, []);
  assert.equal(state?.inFlight, 0);
}

/** The account's usage lines in the ledger, newest last. */
export async function usageLines(here: GatewayHere, { tag }: Pick<TestAccount, "tag">): Promise<LedgerLine[]> {
  const lines = await here.store.readLedger(tag, 0, 1_000);
  return lines.filter((line) => line.kind === "usage" || line.kind === "absorbed");
}

export function memoOf(line: LedgerLine | undefined): Memo {
  assert.ok(line, "there is no ledger line");
  return JSON.parse(line.memo) as Memo;
}

/** What is held for a chat request with these messages, in nano-dollars; the request must be answered. */
export async function heldForChat(here: GatewayHere, messages: readonly Fields[]): Promise<bigint> {
  const account = await here.account();
  const reply = await ask(here, "chat", account.key, { messages });
  assert.equal(reply.status, 200, await reply.clone().text());
  await reply.text();
  await assertAtRest(here, account);
  return BigInt(memoOf((await usageLines(here, account)).at(-1)).hold as string);
}

/** Recomputes a ledger line's amount from its memo alone. */
export function recomputed(line: LedgerLine): bigint {
  return worthOf(memoOf(line));
}

/** The frames of a stream's text: event name and data. */
export function framesOf(text: string): { event: string | undefined; data: string }[] {
  return text
    .split(/\r?\n\r?\n/)
    .filter((frame) => frame.trim() !== "")
    .map((frame) => {
      const lines = frame.split(/\r?\n/);
      const value = (name: string) =>
        lines
          .find((line) => line.startsWith(`${name}:`))
          ?.slice(name.length + 1)
          .trim();
      return { event: value("event"), data: value("data") ?? "" };
    });
}
