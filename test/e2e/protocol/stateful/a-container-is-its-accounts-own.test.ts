/**
 * ARCHITECTURE.md promise 14 and docs/decisions/stateful-upstreams-get-wrapped-ids.md: a server goes on in the container that an
 * item names, so an item names one that its server gave to this account, or the request is refused.
 */
import assert from "node:assert/strict";
import test, { after, before } from "node:test";
import type { GatewayHere, TestAccount } from "../../../rig/gateway.ts";
import { ask, assertAtRest, errorOf, type Fields, framesOf } from "../whole/asking.ts";
import { at, startKeeping } from "./rig.ts";

let here: GatewayHere;
let own: TestAccount;
before(async () => {
  here = await startKeeping();
  own = await here.account();
});
after(() => here.close());

/** As the official service writes them. */
const RAN_IN = `cntr_${"0123456789abcdef".repeat(3)}`;
const WRAPPED = /^cntr_gw1\.u\.[A-Za-z0-9_-]+$/;
const CODE_CALL = { type: "code_interpreter_call", status: "completed", code: "1+1", outputs: null };
const SHELL_CALL = { type: "shell_call", status: "completed", call_id: "call_1", action: { commands: ["ls"] } };
/** Items that name a container, each in its way. */
const ITEMS: readonly Fields[] = [
  { ...CODE_CALL, container_id: RAN_IN },
  { ...SHELL_CALL, environment: { type: "container_reference", container_id: RAN_IN } },
];
/** A server that keeps responses, and one that keeps none. */
const MODELS = ["responses-1", "plain-1"] as const;
const SHOWN = [false, true] as const;

interface Item {
  readonly type: string;
  readonly container_id?: string;
  readonly environment?: { readonly container_id: string };
}

const containerOf = (item: Item | undefined) => item?.container_id ?? item?.environment?.container_id;
const lastInput = () => (here.simulator.requests.at(-1)?.json as { input?: Item[] } | undefined)?.input ?? [];

/** The item as its client gets it, whole or in the last event of a stream. */
async function given(extra: Fields, fields: Fields, key = own.key): Promise<Item> {
  here.simulator.program({ text: "Two.", extra });
  const reply = await ask(here, "responses", key, fields);
  const text = await reply.text();
  assert.equal(reply.status, 200, text);
  assert.ok(!text.includes(RAN_IN), "no client hears the server's own id");
  const response = fields.stream ? JSON.parse(framesOf(text).at(-1)?.data ?? "").response : JSON.parse(text);
  const item = (response.output as Item[]).find(({ type }) => type === extra.type);
  assert.ok(item);
  if (fields.stream) assert.ok(text.split(containerOf(item) ?? "?").length > 2, "in each event");
  return item;
}

for (const extra of ITEMS) {
  for (const model of MODELS) {
    for (const stream of SHOWN) {
      for (const store of [false, undefined]) {
        test(`${extra.type} of ${model}, ${stream ? "streamed" : "whole"}, store ${store}: it goes on in its container`, async () => {
          const item = await given(extra, { model, stream, store });
          assert.match(containerOf(item) ?? "", WRAPPED);
          const input = [{ role: "user", content: "1+1?" }, item, { role: "user", content: "And 2+2?" }];
          const reply = await ask(here, "responses", own.key, { model, store, input });
          assert.equal(reply.status, 200, await reply.clone().text());
          assert.equal(containerOf(lastInput()[1]), RAN_IN, "the server's own");
          assert.ok(!JSON.stringify(lastInput()).includes("gw1."), "a server sees nothing of ours");
          await reply.arrayBuffer();
        });
      }
    }
  }
}

test("an item that is referred to has the server's own container again", async () => {
  for (const stream of SHOWN) {
    const model = "plain-1";
    here.simulator.program({ text: "Two.", extra: ITEMS[0] });
    const reply = await ask(here, "responses", own.key, { model, stream, store: undefined });
    const text = await reply.text();
    const response = stream ? JSON.parse(framesOf(text).at(-1)?.data ?? "").response : JSON.parse(text);
    const carrier = stream ? framesOf(text).flatMap(({ data }) => JSON.parse(data).item ?? []) : [];
    const ids = [...response.output, ...carrier.slice(-1)].map(({ id }) => id);
    const input = [...ids.map((id) => ({ type: "item_reference", id })), { role: "user", content: "And 2+2?" }];
    const next = await ask(here, "responses", own.key, { model, store: undefined, input });
    assert.equal(next.status, 200, await next.clone().text());
    assert.deepEqual(lastInput().map(containerOf), [undefined, RAN_IN, undefined], `${stream}`);
    await next.arrayBuffer();
  }
});

test("another account's, the server's own and a made-up one are told the same, and nothing goes upstream", async () => {
  const stranger = await here.account();
  const before = here.simulator.count;
  for (const model of MODELS) {
    for (const extra of ITEMS) {
      const theirs = containerOf(await given(extra, { model }));
      for (const id of [theirs, RAN_IN, `cntr_gw1.u.${"A".repeat(90)}`, 7, { id: RAN_IN }]) {
        for (const cited of [false, true]) {
          const named = extra.environment ? { environment: { container_id: id } } : { container_id: id };
          const annotations = [{ type: "url_citation" }, { type: "container_file_citation", container_id: id }];
          const content = [{ type: "output_text", text: "Two.", annotations }];
          const item = cited ? { type: "message", role: "assistant", content } : { ...extra, ...named };
          const input = [{ role: "user", content: "1+1?" }, item];
          const count = here.simulator.count;
          const reply = await ask(here, "responses", stranger.key, { model, input });
          const { param, message } = await errorOf(reply);
          const inside = extra.environment ? "environment.container_id" : "container_id";
          const path = cited ? "content[0].annotations[1].container_id" : inside;
          assert.deepEqual([reply.status, param], [400, `input[1].${path}`]);
          assert.match(message, /kept for this account/);
          assert.equal(here.simulator.count, count);
        }
      }
    }
  }
  assert.equal(here.simulator.count, before + MODELS.length * ITEMS.length);
  await assertAtRest(here, stranger);
});

test("of several servers the one is asked that ran it; another protocol's is told nothing of it", async () => {
  const kept = await given(ITEMS[0] as Fields, { model: "responses-1" });
  const input = [{ role: "user", content: "1+1?" }, kept, { role: "user", content: "And 2+2?" }];
  const mixed = await ask(here, "responses", own.key, { model: "mixed", input });
  assert.equal(mixed.status, 200, await mixed.clone().text());
  assert.ok(here.simulator.requests.at(-1)?.headers.includes("Bearer upstream-canary-responses"));
  await mixed.arrayBuffer();
  const elsewhere = await ask(here, "responses", own.key, { model: "plain-1", input });
  const { remedy, param } = await errorOf(elsewhere);
  assert.deepEqual([elsewhere.status, param], [400, "input[1].container_id"]);
  assert.match(remedy, /"responses-1".*leave the item out/);
  const translated = await ask(here, "responses", own.key, { model: "chat-1", input });
  assert.equal(translated.status, 200, await translated.clone().text());
  assert.ok(!JSON.stringify(here.simulator.requests.at(-1)?.json).includes("cntr_"));
  await translated.arrayBuffer();
  // What goes on in a container needs nothing else of its server: it is held for what was sent.
  const reply = await ask(here, "responses", own.key, { model: "responses-1", store: undefined, input });
  assert.equal(reply.status, 200);
  await reply.arrayBuffer();
});

test("a kept response that is read again has the id that its client knows", async () => {
  here.simulator.program({ text: "Two.", extra: ITEMS[0] });
  const reply = await ask(here, "responses", own.key, { model: "responses-1", store: undefined });
  const made = (await reply.json()) as { id: string; output: Item[] };
  const read = await at(here, own.key, "GET", made.id);
  assert.deepEqual(await read.json(), made);
});

test("what a client has called a container itself comes back as it was", async () => {
  const metadata = { container_id: RAN_IN };
  for (const model of MODELS) {
    for (const stream of SHOWN) {
      here.simulator.program({ text: `She said "container_id": "${RAN_IN}".`, extra: { type: "other", metadata } });
      const reply = await ask(here, "responses", own.key, { model, stream, metadata });
      const text = await reply.text();
      assert.equal(reply.status, 200, text);
      const response = stream ? JSON.parse(framesOf(text).at(-1)?.data ?? "").response : JSON.parse(text);
      assert.deepEqual([response.metadata ?? metadata], [metadata]);
      assert.equal(response.output[0].content[0].text, `She said "container_id": "${RAN_IN}".`);
    }
  }
});
