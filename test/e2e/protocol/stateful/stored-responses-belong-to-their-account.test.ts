/**
 * ARCHITECTURE.md promise 14 and docs/decisions/stateful-upstreams-get-wrapped-ids.md: a response that an upstream
 * stores can be continued, read and deleted by the account that it was given to, at that upstream, and by no other
 * account.
 */
import assert from "node:assert/strict";
import test, { after, before } from "node:test";
import type { GatewayHere, TestAccount } from "../../../rig/gateway.ts";
import { ask, assertAtRest, errorOf, framesOf, memoOf, usageLines } from "../whole/asking.ts";
import { at, startKeeping } from "./rig.ts";

let here: GatewayHere;
let own: TestAccount;
before(async () => {
  here = await startKeeping();
  own = await here.account();
});
after(() => here.close());

interface Item {
  readonly id: string;
  readonly type: string;
}
interface Kept {
  readonly id: string;
  readonly model: string;
  readonly previous_response_id: string | null;
  readonly output: readonly Item[];
  readonly usage: { readonly input_tokens: number };
}

const KEPT = { store: undefined };

async function given(key: string, fields: object = {}): Promise<Kept> {
  const reply = await ask(here, "responses", key, { ...KEPT, ...fields });
  assert.equal(reply.status, 200, await reply.clone().text());
  return (await reply.json()) as Kept;
}

const lastSent = () => here.simulator.requests.at(-1)?.json as Record<string, unknown>;
const WRAPPED = /^(?:resp|msg|rs|fc)_gw1\.u\.[A-Za-z0-9_-]+$/;

test("three steps, each with the response before: what the server counts is charged", async () => {
  const account = await here.account();
  let previous: string | undefined;
  const counted: number[] = [];
  for (const text of ["one", "two", "three"]) {
    here.simulator.program({ text: text.repeat(400) });
    const reply = await given(account.key, { previous_response_id: previous, input: text });
    assert.match(reply.id, WRAPPED);
    assert.ok(reply.id.length < 140, `${reply.id.length} characters`);
    assert.equal(reply.previous_response_id, previous ?? null, "the client receives the id that it sent");
    assert.match(reply.output[0]?.id ?? "", WRAPPED);
    assert.ok(!JSON.stringify(lastSent()).includes("gw1."), "no wrapped id is sent to an upstream");
    assert.equal(lastSent().store, undefined, "`store` is sent only if the client sets it");
    counted.push(reply.usage.input_tokens);
    previous = reply.id;
  }
  await assertAtRest(here, account);
  const paid = (await usageLines(here, account)).map((line) => memoOf(line).input);
  assert.deepEqual(paid, counted);
  assert.ok((counted[2] ?? 0) > (counted[1] ?? 0) + 300 && (counted[1] ?? 0) > (counted[0] ?? 0) + 300, `${counted}`);
});

test("a response is read, its input listed, then deleted and gone; none of this is charged", async () => {
  const account = await here.account();
  const reply = await given(account.key, { model: "responses-alias", input: "Is it kept?" });
  await assertAtRest(here, account);
  const before = await here.store.inspect(account.tag);
  const read = await at(here, account.key, "GET", `${reply.id}?include[]=message.output_text.logprobs`);
  assert.equal(read.status, 200);
  assert.deepEqual(await read.json(), reply, "the response is returned unchanged");
  assert.match(here.simulator.requests.at(-1)?.path ?? "", /\?include%5B%5D=message\.output_text\.logprobs$/);
  const items = await at(here, account.key, "GET", `${reply.id}/input_items?limit=1&order=asc`);
  const page = (await items.json()) as { data: Item[]; first_id: string; last_id: string };
  assert.match(page.data[0]?.id ?? "", WRAPPED);
  assert.equal(page.first_id, page.data[0]?.id);
  const next = await at(here, account.key, "GET", `${reply.id}/input_items?after=${page.last_id}`);
  assert.deepEqual(((await next.json()) as { data: Item[] }).data, []);
  const cancelled = await at(here, account.key, "POST", `${reply.id}/cancel`);
  assert.equal(cancelled.status, 400);
  assert.match((await errorOf(cancelled)).message, /synchronous/);
  const deleted = await at(here, account.key, "DELETE", reply.id);
  assert.deepEqual(await deleted.json(), { id: reply.id, object: "response", deleted: true });
  assert.equal((await at(here, account.key, "GET", reply.id)).status, 404);
  const gone = await ask(here, "responses", account.key, { ...KEPT, previous_response_id: reply.id });
  assert.equal(gone.status, 400);
  const { message } = await errorOf(gone);
  assert.ok(message.includes(reply.id), message);
  assert.ok(!/resp_[0-9a-f]{16}/.test(message), "the message does not contain the id of the server");
  assert.deepEqual((await here.store.inspect(account.tag))?.account.balance, before?.account.balance);
  for (const { method, headers } of here.simulator.requests.slice(-6, -1)) {
    const type = headers.findIndex((name) => name.toLowerCase() === "content-type");
    assert.ok(method === "POST" || type < 0, "no Content-Type is sent without a body");
  }
});

test("a list that starts after another server's item is refused, and a repeated query parameter is passed on", async () => {
  const account = await here.account();
  const [first, other] = [await given(account.key), await given(account.key, { model: "elsewhere-1" })];
  const item = other.output[0]?.id ?? "";
  const before = here.simulator.count;
  const refused = await at(here, account.key, "GET", `${first.id}/input_items?after=${item}`);
  assert.equal(refused.status, 400);
  assert.equal((await errorOf(refused)).param, "after");
  assert.equal(here.simulator.count, before, "nothing is sent to an upstream");
  await at(here, account.key, "GET", `${first.id}?include[]=a&include[]=b`);
  assert.match(here.simulator.requests.at(-1)?.path ?? "", /include%5B%5D=a&include%5B%5D=b$/);
});

test("a server that is now told to store nothing is not called for what it stored before", async (t) => {
  const other = await startKeeping();
  t.after(() => other.close());
  const account = await other.account();
  const reply = (await (await ask(other, "responses", account.key, KEPT)).json()) as Kept;
  const upstreams = new Map(other.settings.upstreams);
  const catalog = { ...other.settings.catalog, models: new Map(other.settings.catalog.models) };
  for (const [name, model] of catalog.models)
    catalog.models.set(name, { ...model, routes: model.routes.map((route) => ({ ...route, stateful: false })) });
  other.gateway.apply({ ...other.settings, upstreams, catalog });
  const before = other.simulator.count;
  const gone = await at(other, account.key, "GET", reply.id);
  assert.equal(gone.status, 404);
  assert.match((await errorOf(gone)).remedy ?? "", /no longer serves/);
  assert.equal(other.simulator.count, before);
});

test("another account's id, a changed letter and a made-up id get the same refusal, and nothing goes upstream", async () => {
  const stranger = await here.account();
  const { id, output } = await given(own.key);
  const item = output[0]?.id ?? "";
  const changed = id.slice(0, -6) + (id.at(-6) === "A" ? "B" : "A") + id.slice(-5);
  const before = here.simulator.count;
  for (const [method, rest] of [
    ["GET", ""],
    ["DELETE", ""],
    ["POST", "/cancel"],
    ["GET", "/input_items"],
  ] as const) {
    const answers = [];
    for (const [key, asked] of [
      [stranger.key, id],
      [own.key, changed],
      [own.key, `resp_gw1.u.${"A".repeat(90)}`],
      [own.key, "resp_0123456789abcdef0123456789abcdef"],
      [own.key, item.replace(/^msg_/, "resp_")],
    ] as const) {
      const reply = await at(here, key, method, asked + rest);
      const { request_id: _, message, ...error } = (await errorOf(reply)) as unknown as Record<string, string>;
      answers.push([reply.status, String(message).replace(asked, "ID"), error]);
    }
    for (const answer of answers) assert.deepEqual(answer, answers[0]);
    assert.equal(answers[0]?.[0], 404);
  }
  const refusals = [];
  for (const [key, fields] of [
    [stranger.key, { previous_response_id: id }],
    [own.key, { previous_response_id: changed }],
    [own.key, { previous_response_id: "resp_0123456789abcdef0123456789abcdef" }],
  ] as const) {
    const reply = await ask(here, "responses", key, { ...KEPT, ...fields });
    const { request_id: _, ...error } = (await errorOf(reply)) as unknown as Record<string, string>;
    refusals.push([reply.status, error]);
  }
  for (const refusal of refusals) assert.deepEqual(refusal, refusals[0]);
  assert.equal(refusals[0]?.[0], 400);
  for (const fields of [
    { input: [{ type: "item_reference", id: item }] },
    { input: [{ id: item }] },
    { input: [{ type: "mcp_approval_response", approval_request_id: item, approve: true }] },
  ]) {
    const reply = await ask(here, "responses", stranger.key, { ...KEPT, ...fields });
    assert.equal(reply.status, 400, JSON.stringify(fields));
  }
  assert.equal(here.simulator.count, before, "nothing is sent to the upstream");
  await assertAtRest(here, stranger);
  await assertAtRest(here, own);
});

test("a server's own ids never reach it from a client: it would look them up for any account", async () => {
  const stranger = await here.account();
  here.simulator.program({ thinking: "hm", text: "the canary" });
  await given(own.key);
  const raw = here.simulator.requests.at(-1);
  assert.ok(raw);
  const read = (await (await fetch(`${here.simulator.url}/responses/${rawId()}`)).json()) as Kept;
  const [reasoning, message] = read.output;
  assert.ok(reasoning && message && !reasoning.id.includes("gw1."));
  await given(stranger.key, {
    input: [
      { type: "reasoning", id: reasoning.id, summary: [] },
      { ...message, content: [{ type: "output_text", text: "mine" }] },
      { role: "user", content: "Go on." },
    ],
  });
  const input = lastSent().input as Item[];
  assert.deepEqual(
    input.map(({ type, id }) => [type, id]),
    [
      ["message", undefined],
      [undefined, undefined],
    ],
  );

  /** The server's id of the last response, which only a test can learn. */
  function rawId(): string {
    const ids = here.simulator.keptIds();
    return ids.at(-1) as string;
  }
});

test("items that are sent back whole get the server's ids again, and those of other servers get none", async () => {
  here.simulator.program({ thinking: "hm", text: "said", tools: [{ name: "look", arguments: {} }] });
  const { output } = await given(own.key);
  const call = output.find(({ type }) => type === "function_call") as Item & { call_id: string };
  const result = { type: "function_call_output", call_id: call.call_id, output: "fine" };
  await given(own.key, { input: [...output, result] });
  const sent = lastSent().input as Item[];
  assert.deepEqual(
    sent.map(({ type }) => type),
    ["reasoning", "message", "function_call", "function_call_output"],
  );
  for (const { id, type } of sent.slice(0, 3)) assert.match(id, /^(?:rs|msg|fc)_[A-Za-z0-9]+$/, type);
  // The same on a model of another storing server: what it cannot look up is left out, the rest has no ids.
  await given(own.key, { model: "elsewhere-1", input: [...output.slice(1), result] });
  assert.ok((lastSent().input as Item[]).every(({ id }) => id === undefined));
  await given(own.key, { model: "plain-1", input: [...output.slice(1), result] });
  assert.ok(!JSON.stringify(lastSent()).includes("gw1."));
  for (const model of ["chat-1", "messages-1"]) {
    await given(own.key, { model, input: [...output, result] });
    assert.ok(!JSON.stringify(lastSent()).includes("gw1."), model);
  }
});

test("a stream has the same ids in every event, and they can be continued from", async () => {
  const reply = await (async () => {
    here.simulator.program({ thinking: "hm ".repeat(20), text: "words ".repeat(50), tools: [{ name: "look" }] });
    return ask(here, "responses", own.key, { ...KEPT, stream: true });
  })();
  const text = await reply.text();
  const events = framesOf(text).map(({ data }) => JSON.parse(data));
  const ids = new Set<string>();
  const visit = (value: unknown): void => {
    if (typeof value !== "object" || value === null) return;
    for (const [name, inner] of Object.entries(value)) {
      if ((name === "id" || name === "item_id") && typeof inner === "string") ids.add(inner);
      else visit(inner);
    }
  };
  for (const event of events) visit(event);
  assert.equal(ids.size, 4, [...ids].join("\n"));
  for (const id of ids) assert.match(id, WRAPPED);
  const last = events.at(-1);
  assert.equal(last.type, "response.completed");
  assert.ok(events.filter(({ type }) => type === "response.output_text.delta").length > 20);
  const read = await at(here, own.key, "GET", last.response.id);
  assert.deepEqual(((await read.json()) as Kept).output, last.response.output);
  const next = await given(own.key, { previous_response_id: last.response.id });
  assert.equal(next.previous_response_id, last.response.id);
  // A reference to an item of the stream.
  await given(own.key, {
    input: [
      { type: "item_reference", id: last.response.output[1].id },
      { role: "user", content: "x" },
    ],
  });
  assert.deepEqual((lastSent().input as Item[])[0]?.type, "item_reference");
});

test("a model with several routes: what is stored at one goes there, and nowhere else if it is down", async () => {
  const { id, output } = await given(own.key);
  for (const fields of [{ previous_response_id: id }, { input: [{ type: "item_reference", id: output[0]?.id }] }]) {
    await given(own.key, { model: "mixed", ...fields });
    const sent = here.simulator.requests.at(-1);
    assert.match(sent?.path ?? "", /responses$/);
    assert.ok(sent?.headers.includes("Bearer upstream-canary-responses"));
    assert.ok(!JSON.stringify(sent?.json).includes("gw1."));
  }
  const before = here.simulator.count;
  here.simulator.program({ fault: { status: 503 } }, { times: 2 });
  const down = await ask(here, "responses", own.key, { ...KEPT, model: "mixed", previous_response_id: id });
  const error = await errorOf(down);
  assert.deepEqual([down.status, error.cause], [403, "upstream_unavailable"]);
  assert.match(error.message, /one server keeps/);
  assert.equal(down.headers.get("x-should-retry"), "true");
  assert.ok(Number(down.headers.get("retry-after")) > 0);
  assert.deepEqual(
    here.simulator.requests.slice(before - here.simulator.count).map(({ path }) => path),
    ["/v1/responses", "/v1/responses"],
    "the same server is asked twice, and no other",
  );
  here.simulator.clearPrograms();
  // No server can answer a request with ids of two servers.
  const other = await given(own.key, { model: "elsewhere-1" });
  for (const model of ["mixed", "responses-1", "elsewhere-1"]) {
    const fields = { model, previous_response_id: id, input: [{ type: "item_reference", id: other.output[0]?.id }] };
    const both = await ask(here, "responses", own.key, { ...KEPT, ...fields });
    assert.equal(both.status, 400, model);
  }
});

test("a stored response that would take seconds to read is refused", async () => {
  const { id } = await given(own.key);
  const names = Object.fromEntries(Array.from({ length: 60_000 }, (_, at) => [`name${at}`, 0]));
  const body = { id, object: "response", more: names };
  here.simulator.program({ body }, { when: ({ path }) => path.startsWith("/v1/responses/") });
  const read = await at(here, own.key, "GET", id);
  assert.deepEqual([read.status, (await errorOf(read)).cause], [403, "upstream_invalid"]);
  assert.equal((await at(here, own.key, "GET", id)).status, 200);
});

test("if nothing is stored, the refusal names the settings that help", async () => {
  const { id } = await given(own.key);
  for (const model of ["plain-1", "chat-1", "messages-1"]) {
    const foreign = await ask(here, "responses", own.key, { ...KEPT, model, previous_response_id: id });
    assert.equal(foreign.status, 400);
    assert.match((await errorOf(foreign)).remedy, /responses-1/);
    const unknown = await ask(here, "responses", own.key, { ...KEPT, model, previous_response_id: "resp_1" });
    const { remedy, param } = await errorOf(unknown);
    assert.equal(param, "previous_response_id");
    assert.match(remedy, /store: false.*stateful: true/);
  }
  for (const [member, value] of [
    ["background", true],
    ["background_options", { completion_window: "soonest" }],
    ["conversation", "conv_1"],
    ["prompt", { id: "pmpt_1" }],
  ] as const) {
    const reply = await ask(here, "responses", own.key, { ...KEPT, [member]: value });
    assert.deepEqual([reply.status, (await errorOf(reply)).param], [400, member]);
  }
  const streamed = await at(here, own.key, "GET", `${id}?stream=true`);
  assert.deepEqual([streamed.status, (await errorOf(streamed)).param], [400, "stream"]);
});

test("a stored response is refused to a key that is revoked, of a group without the model, or above its rate limit", async () => {
  const account = await here.account();
  const { id } = await given(account.key);
  await assertAtRest(here, account);
  await here.store.changeKey(account.tag, account.keyId, { group: "limited-money" });
  assert.equal((await at(here, account.key, "GET", id)).status, 403);
  assert.equal((await at(here, account.key, "DELETE", id)).status, 403);
  await here.store.changeKey(account.tag, account.keyId, { group: "money" });
  assert.equal((await at(here, account.key, "GET", id)).status, 200);
  let limited: Response | undefined;
  for (let n = 0; n < 400 && !limited; n++) {
    const reply = await at(here, account.key, "GET", "resp_1");
    await reply.arrayBuffer();
    if (reply.status === 429) limited = reply;
  }
  assert.ok(Number(limited?.headers.get("retry-after")) > 0);
  await here.store.revokeKey(account.tag, account.keyId);
  assert.equal((await at(here, account.key, "GET", id)).status, 401);
});

test("the hold for a conversation that the gateway cannot see is the model's whole context", async () => {
  const account = await here.account({ usd: "1" });
  const { id, output } = await given(account.key);
  await assertAtRest(here, account);
  const heldFor = async (fields: object) => {
    const path = "/v1/explain?protocol=responses";
    const explained = await ask(here, "responses", account.key, { ...KEPT, ...fields }, { path });
    return Number(((await explained.json()) as { hold: { usd: string } }).hold.usd);
  };
  assert.equal(
    await heldFor({ previous_response_id: id }),
    0.404,
    "200,000 tokens at the highest input price, and 400 of output",
  );
  // Items that are sent back whole have such ids too, and contain all that there is to read.
  assert.ok((await heldFor({ input: [...output, { role: "user", content: "and?" }] })) < 0.006);
  // A hundred at once on money for two: no more are answered than are covered, each is charged, and no hold is left.
  const replies = await Promise.all(
    Array.from({ length: 100 }, () => ask(here, "responses", account.key, { ...KEPT, previous_response_id: id })),
  );
  const answered = replies.filter(({ status }) => status === 200).length;
  assert.ok(answered >= 1, `${answered} answered`);
  for (const reply of replies) {
    if (reply.status !== 200) assert.equal((await errorOf(reply)).cause, "insufficient_balance");
    else await reply.arrayBuffer();
  }
  await assertAtRest(here, account);
  const lines = await usageLines(here, account);
  assert.equal(lines.length, answered + 1, "one line for each");
  const state = await here.store.inspect(account.tag);
  assert.ok(state && state.account.balance > 0n);
});
