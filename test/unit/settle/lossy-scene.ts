/** A gateway whose store a test makes lose data, as its operator and its clients see it. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { setTimeout } from "node:timers/promises";
import { runCli } from "../../../src/cli/cli.ts";
import type { Store } from "../../../src/store/contract.ts";
import { auditAccount } from "../../../src/store/ledger/audit.ts";
import type { AccountState } from "../../../src/store/records.ts";
import { newAccountTag, newKey } from "../../../src/values/key.ts";
import { auditToEnd } from "../../rig/audit-to-end.ts";
import type { TestRedis } from "../../rig/redis.ts";

export const TOKEN = "test-admin-token";
export const LOST = /^THE STORE LOST DATA/;

/** Sends one request to the admin API. */
export async function admin(
  adminUrl: string,
  method: string,
  path: string,
  body?: object,
): Promise<{ status: number; json: Record<string, unknown> }> {
  const answer = await fetch(`${adminUrl}/admin/v1${path}`, {
    method,
    headers: { authorization: `Bearer ${TOKEN}`, "content-type": "application/json" },
    ...(body ? { body: JSON.stringify(body) } : {}),
  });
  return { status: answer.status, json: (await answer.json()) as Record<string, unknown> };
}

/** Runs one command of the command line against a gateway. */
export async function tollgate(adminUrl: string, ...argv: string[]): Promise<{ status: number; out: string }> {
  let out = "";
  const write = (text: string) => (out += text);
  const status = await runCli(argv, {
    stdout: { write },
    stderr: { write },
    env: { TOLLGATE_ADMIN_URL: adminUrl, TOLLGATE_ADMIN_TOKEN: TOKEN },
    fetch,
    serve: () => Promise.reject(new Error("not here")),
    check: () => Promise.reject(new Error("not here")),
  });
  return { status, out };
}

/** Sends a write as an operator should: again while no replica has confirmed it in time, as on a busy machine. */
async function confirmed(
  adminUrl: string,
  path: string,
  body: object,
): Promise<{ again: boolean; status: number; json: Json }> {
  for (let again = false; ; again = true) {
    const { status, json } = await admin(adminUrl, "POST", path, body);
    if (status !== 503) return { again, status, json };
    assert.equal((json.error as Json).code, "not_confirmed");
  }
}

type Json = Record<string, unknown>;

/** Creates an account with funds and a key through the admin API, so that the journal has it. @returns the key. */
export async function openAccount(adminUrl: string, name: string): Promise<string> {
  const made = await confirmed(adminUrl, "/accounts", { name });
  assert.equal(made.status, made.again ? 200 : 201);
  const paid = await confirmed(adminUrl, `/accounts/${name}/topups`, { usd: "5", id: `pay-${name}` });
  assert.equal(paid.status, paid.again ? 200 : 201);
  const { json } = await confirmed(adminUrl, `/accounts/${name}/keys`, { group: "money" });
  return json.key as string;
}

export interface Chatted {
  readonly status: number;
  readonly requestId: string;
  readonly text: string;
}

export async function chat(url: string, key: string, stream = false): Promise<Chatted> {
  const answer = await fetch(`${url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify({ model: "chat-1", stream, messages: [{ role: "user", content: "hello" }], max_tokens: 500 }),
  });
  const text = await answer.text();
  return { status: answer.status, requestId: answer.headers.get("x-request-id") ?? "", text };
}

/** The answer of the readiness check. */
export async function readiness(adminUrl: string): Promise<{ ready: boolean; reasons: string[] }> {
  return (await (await fetch(`${adminUrl}/readyz`)).json()) as { ready: boolean; reasons: string[] };
}

/** The account's state, whose ledger must balance. */
export async function balanced(store: Store, name: string): Promise<AccountState> {
  const account = await store.findAccount(name);
  assert.ok(account, `${name} is there`);
  const audit = await auditToEnd(auditAccount(store, account));
  assert.deepEqual(audit.findings, []);
  assert.equal(audit.outcome, "balanced");
  return (await store.inspect(account.tag)) as AccountState;
}

/** References of the lines that charge, sorted. */
export function charged(state: AccountState): string[] {
  return state.ledger
    .filter(({ kind }) => kind === "usage")
    .map(({ reference }) => reference)
    .sort();
}

/** How long to wait for other processes: far more than they need, and far less than a test file may take. */
const WAIT_MS_MAX = 60_000;
const POLL_MS = 10;

/** Polls until the condition is true. @param missing the message if it is not true in time. */
export async function until(missing: string | (() => string), holds: () => Promise<boolean>): Promise<void> {
  const deadline = performance.now() + WAIT_MS_MAX;
  while (!(await holds())) {
    if (performance.now() > deadline) assert.fail(typeof missing === "string" ? missing : missing());
    await setTimeout(POLL_MS);
  }
}

/** Resolves when the store has every charge. */
export async function untilSettled(adminUrl: string): Promise<void> {
  let waiting: unknown;
  await until(
    () => `charges wait for the store: ${waiting}`,
    async () => {
      waiting = (await admin(adminUrl, "GET", "/store")).json.waiting_charges;
      return waiting === 0;
    },
  );
}

/** Increases the count of a Redis' history, as if this many seconds had passed. */
export async function passSeconds(redis: TestRedis, url: string, seconds: number): Promise<void> {
  const [key] = /epoch:\{[^}]*\}/.exec(await redis.command("KEYS", "epoch:*")) ?? [];
  assert.ok(key);
  await redis.command("HINCRBY", key, "n", `${seconds}`);
  await lookAgain(url);
}

/** Resolves when a gateway has looked at the store's history again, which it does before it answers that a key is unknown. */
export async function lookAgain(url: string): Promise<void> {
  const { text } = newKey(newAccountTag(randomBytes), randomBytes);
  assert.equal((await chat(url, text)).status, 401);
}

/** Reads from the gateway's status what has to be confirmed, and confirms it. */
export async function confirmStore(adminUrl: string): Promise<void> {
  const { json } = await admin(adminUrl, "GET", "/store");
  const { status } = await admin(adminUrl, "POST", "/store/confirm", { confirm: json.confirm });
  assert.equal(status, 200);
}
