/**
 * ARCHITECTURE.md promise 14 and docs/decisions/stateful-upstreams-get-wrapped-ids.md: a server continues in the
 * container that an item names. So an item must name a container that its server gave to this account; otherwise the
 * request is refused.
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
/** Items that name a container, each in its own way. */
const ITEMS: readonly Fields[] = [
  { ...CODE_CALL, container_id: RAN_IN },
  { ...SHELL_CALL, environment: { type: "container_reference", container_id: RAN_IN } },
];
/** A server that stores responses, and one that does not. */
const MODELS = ["responses-1", "plain-1"] as const;
const SHOWN = [false, true] as const;

interface Item {
  readonly type: string;
  readonly container_id?: string;
  readonly environment?: { readonly container_id: string };
}

const containerOf = (item: Item | undefined) => item?.container_id ?? item?.environment?.container_id;
const lastInput = () => (here.simulator.requests.at(-1)?.json as { input?: Item[] } | undefined)?.input ?? [];

/** The item as its client receives it, whole or in the last event of a stream. */
async function given(extra: Fields, fields: Fields, key = own.key): Promise<Item> {
  here.simulator.program({ text: "Two.", extra });
  const reply = await ask(here, "responses", key, fields);
  const text = await reply.text();
  assert.equal(reply.status, 200, text);
  assert.ok(!text.includes(RAN_IN), "the id of the server is not sent to a client");
  const response = fields.stream ? JSON.parse(framesOf(text).at(-1)?.data ?? "").response : JSON.parse(text);
  const item = (response.output as Item[]).find(({ type }) => type === extra.type);
  assert.ok(item);
  if (fields.stream) assert.ok(text.split(containerOf(item) ?? "?").length > 2, "the wrapped id is in each event");
  return item;
}

for (const extra of ITEMS) {
  for (const model of MODELS) {
    for (const stream of SHOWN) {
      for (const store of [false, undefined]) {
        test(`${extra.type} of ${model}, ${stream ? "streamed" : "whole"}, store ${store}: the server continues in its container`, async () => {
          const item = await given(extra, { model, stream, store });
          assert.match(containerOf(item) ?? "", WRAPPED);
          const input = [{ role: "user", content: "1+1?" }, item, { role: "user", content: "And 2+2?" }];
          const reply = await ask(here, "responses", own.key, { model, store, input });
          assert.equal(reply.status, 200, await reply.clone().text());
          assert.equal(containerOf(lastInput()[1]), RAN_IN, "the server receives its own id");
          assert.ok(!JSON.stringify(lastInput()).includes("gw1."), "no wrapped id is sent to an upstream");
          await reply.arrayBuffer();
        });
      }
    }
  }
}

test("an item that is referred to names the server's own container again", async () => {
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

test("a conversation that ran in two containers one after the other, and in two ways", async () => {
  for (const model of MODELS) {
    const ran = [];
    for (const [at, extra] of [...ITEMS, ...ITEMS].entries()) {
      const id = `${RAN_IN.slice(0, -1)}${at}`;
      const named = extra.environment ? { environment: { container_id: id } } : { container_id: id };
      ran.push(await given({ ...extra, ...named }, { model }));
    }
    const reply = await ask(here, "responses", own.key, { model, input: [...ran, { role: "user", content: "More." }] });
    assert.equal(reply.status, 200, await reply.clone().text());
    const sent = lastInput().map(containerOf);
    assert.deepEqual(sent, [...ran.map((_, at) => `${RAN_IN.slice(0, -1)}${at}`), undefined]);
    await reply.arrayBuffer();
  }
});

/** The refusal of an item with this id, and the member that it names; undefined: none. */
const IN_ITEMS: readonly (readonly [string, (id: unknown) => string, string | undefined])[] = [
  ["of a call", (id) => JSON.stringify({ ...CODE_CALL, container_id: id }), "input[1].container_id"],
  [
    "of a shell",
    (id) => JSON.stringify({ ...SHELL_CALL, environment: { container_id: id } }),
    "input[1].environment.container_id",
  ],
  [
    "with escapes in its name",
    (id) => `{"type":"code_interpreter_call","\\u0063ontainer_id":${JSON.stringify(id)}}`,
    "input[].container_id",
  ],
  ["with another case", (id) => JSON.stringify({ ...CODE_CALL, Container_Id: id }), "input[].Container_Id"],
  [
    "in an environment with another case",
    (id) => JSON.stringify({ ...SHELL_CALL, Environment: { container_id: id } }),
    "input[].Environment",
  ],
  [
    "in camel case, in an environment",
    (id) => JSON.stringify({ ...SHELL_CALL, environment: { containerId: id } }),
    "environment[].containerId",
  ],
  [
    "behind which none stands",
    (id) => `{"type":"code_interpreter_call","container_id":${JSON.stringify(id)},"container_id":null}`,
    "input[].container_id",
  ],
  [
    "in an environment behind which none stands",
    (id) => `{"type":"shell_call","environment":{"container_id":${JSON.stringify(id)}},"environment":null}`,
    "input[].environment",
  ],
  [
    "in an environment, behind which none stands",
    (id) => `{"type":"shell_call","environment":{"container_id":${JSON.stringify(id)},"container_id":null}}`,
    "environment[].container_id",
  ],
  [
    "in a list of environments",
    (id) => JSON.stringify({ ...SHELL_CALL, environment: [{ container_id: id }] }),
    "input[1].environment",
  ],
  ["as an environment", (id) => JSON.stringify({ ...SHELL_CALL, environment: id }), "input[1].environment"],
  [
    "as an environment's own",
    (id) => JSON.stringify({ ...SHELL_CALL, environment: { id } }),
    "input[1].environment.id",
  ],
  ["of a container", (id) => JSON.stringify({ ...CODE_CALL, container: { id } }), "input[1].container.id"],
  [
    "of a part",
    (id) => JSON.stringify({ role: "user", content: [{ type: "input_text", text: "x", container_id: id }] }),
    "input[1].content[0].container_id",
  ],
];

test("another account's id, the server's own id and a made-up id get the same refusal, and nothing goes upstream", async () => {
  const stranger = await here.account();
  for (const model of MODELS) {
    const theirs = containerOf(await given(ITEMS[0] as Fields, { model }));
    const count = here.simulator.count;
    for (const id of [theirs, RAN_IN, `cntr_gw1.u.${"A".repeat(90)}`]) {
      for (const [how, itemOf, param] of IN_ITEMS) {
        for (const store of SHOWN) {
          const raw = `{"model":"${model}","store":${store},"input":[{"role":"user","content":"1+1?"},${itemOf(id)}]}`;
          const reply = await ask(here, "responses", stranger.key, {}, { raw });
          assert.equal(reply.status, 400, `${how}: ${raw}`);
          assert.equal((await errorOf(reply)).param, param, how);
        }
      }
      const instructions = [
        { ...CODE_CALL, container_id: id },
        { ...SHELL_CALL, environment: { container_id: id } },
      ];
      for (const one of instructions) {
        const reply = await ask(here, "responses", stranger.key, { model, instructions: [one] });
        assert.equal(reply.status, 400, JSON.stringify(one));
        assert.equal((await errorOf(reply)).param, "instructions");
      }
    }
    for (const id of [7, { id: RAN_IN }, [RAN_IN], true]) {
      const input = [{ ...CODE_CALL, container_id: id }];
      const reply = await ask(here, "responses", stranger.key, { model, input });
      assert.deepEqual([reply.status, (await errorOf(reply)).param], [400, "input[0].container_id"]);
    }
    assert.equal(here.simulator.count, count);
    for (const id of [null, ""]) {
      const reply = await ask(here, "responses", stranger.key, { model, input: [{ ...CODE_CALL, container_id: id }] });
      assert.equal(reply.status, 200, "the item names no container");
      await reply.arrayBuffer();
    }
  }
  await assertAtRest(here, stranger);
});

test("an id in a client's text is not wrapped when the server returns it, so nobody gets another account's id wrapped this way", async () => {
  const said = [
    { type: "message", role: "user", content: [{ type: "input_text", text: `"container_id": "${RAN_IN}"` }] },
    {
      type: "tool_search_output",
      call_id: "call_1",
      tools: [{ type: "function", name: "f", parameters: { default: { container_id: RAN_IN } } }],
    },
  ];
  const reply = await ask(here, "responses", own.key, { model: "responses-1", store: undefined, input: said });
  assert.equal(reply.status, 200, await reply.clone().text());
  const { id } = (await reply.json()) as { id: string };
  const listed = await (await at(here, own.key, "GET", `${id}/input_items?order=asc`)).text();
  assert.ok(listed.includes(RAN_IN), "text of the client is returned unchanged");
  assert.ok(!listed.includes("cntr_gw1"), listed);
});

test("of several servers the one that ran the container is tried first; another does not receive the id, and the loss is named", async () => {
  const ran = [];
  for (const extra of ITEMS) ran.push(await given(extra, { model: "plain-1" }));
  const input = [{ role: "user", content: "1+1?" }, ...ran, { role: "user", content: "And 2+2?" }];
  // `mixed` has two servers of equal priority, and one with a lower one.
  for (let time = 0; time < 8; time++) {
    const turns = [{ role: "user", content: `Question ${time}` }, ...input];
    const reply = await ask(here, "responses", own.key, { model: "mixed", input: turns });
    assert.equal(reply.status, 200, await reply.clone().text());
    assert.deepEqual(
      lastInput().map(containerOf).filter(Boolean),
      [RAN_IN, RAN_IN],
      "the server that ran the code receives both ids",
    );
    assert.equal(reply.headers.get("x-tollgate-translation"), null);
    await reply.arrayBuffer();
  }
  const elsewhere = await ask(here, "responses", own.key, { model: "elsewhere-1", input });
  assert.equal(elsewhere.status, 200, await elsewhere.clone().text());
  assert.equal(elsewhere.headers.get("x-tollgate-translation"), "lossy; dropped=input.container_id");
  await elsewhere.arrayBuffer();
  const sent = JSON.stringify(lastInput());
  assert.ok(!sent.includes("cntr_") && !sent.includes("code_interpreter_call") && sent.includes("shell_call"), sent);
  const strict = await ask(
    here,
    "responses",
    own.key,
    { model: "elsewhere-1", input },
    { headers: { "x-tollgate-strict": "1" } },
  );
  assert.deepEqual([strict.status, (await errorOf(strict)).param], [400, "input.container_id"]);
  const output = {
    type: "shell_call_output",
    call_id: "call_1",
    output: [{ stdout: "2", stderr: "", outcome: { type: "exit", exit_code: 0 } }],
  };
  const answered = [...input.slice(0, -1), output, ...input.slice(-1)];
  const translated = await ask(here, "responses", own.key, { model: "chat-1", input: answered });
  assert.equal(translated.status, 200, await translated.clone().text());
  assert.ok(!JSON.stringify(here.simulator.requests.at(-1)?.json).includes("cntr_"));
  await translated.arrayBuffer();
});

test("the container that ran last decides which server is tried first", async () => {
  const ran = {
    responses: await given(ITEMS[0] as Fields, { model: "plain-1" }),
    "plain-2": await given(ITEMS[0] as Fields, { model: "plain-2" }),
  };
  for (const [first, last] of [
    ["responses", "plain-2"],
    ["plain-2", "responses"],
  ] as const) {
    for (let time = 0; time < 4; time++) {
      const input = [
        { role: "user", content: `Question ${time}` },
        ran[first],
        ran[last],
        { role: "user", content: "?" },
      ];
      const reply = await ask(here, "responses", own.key, { model: "either", input });
      assert.equal(reply.status, 200, await reply.clone().text());
      await reply.arrayBuffer();
      assert.ok(here.simulator.requests.at(-1)?.headers.includes(`Bearer upstream-canary-${last}`));
      assert.deepEqual(lastInput().map(containerOf).filter(Boolean), [RAN_IN], "each server receives only its own id");
    }
  }
});

test("commands that ran at another server carry none of the gateway's ids", async () => {
  const shell = await given(ITEMS[1] as Fields, { model: "responses-1", store: undefined });
  const reply = await ask(here, "responses", own.key, {
    model: "plain-1",
    input: [shell, { role: "user", content: "?" }],
  });
  assert.equal(reply.status, 200, await reply.clone().text());
  await reply.arrayBuffer();
  const sent = JSON.stringify(lastInput());
  assert.ok(sent.includes("shell_call") && !sent.includes("gw1.") && !sent.includes("container_id"), sent);
});

test("counting tokens and explaining a request judge containers in the same way", async () => {
  const stranger = await here.account();
  const theirs = await given(ITEMS[0] as Fields, { model: "plain-1" });
  for (const [key, item] of [
    [own.key, theirs],
    [stranger.key, theirs],
  ] as const) {
    const count = here.simulator.count;
    const path = "/v1/responses/input_tokens";
    const reply = await ask(
      here,
      "responses",
      key,
      { model: "plain-1", max_output_tokens: undefined, input: [item] },
      { path },
    );
    assert.equal(reply.status, 200, await reply.clone().text());
    await reply.arrayBuffer();
    const sent = here.simulator.count === count ? "" : JSON.stringify(here.simulator.requests.at(-1)?.json);
    assert.ok(!sent.includes("gw1."));
    assert.equal(sent.includes(RAN_IN), key === own.key && sent !== "");
  }
});

test("a stored response that is read again has the container id that its client knows", async () => {
  here.simulator.program({ text: "Two.", extra: ITEMS[0] });
  const reply = await ask(here, "responses", own.key, { model: "responses-1", store: undefined });
  const made = (await reply.json()) as { id: string; output: Item[] };
  const read = await at(here, own.key, "GET", made.id);
  assert.deepEqual(await read.json(), made);
});

test("a container id that the client invented comes back unchanged", async () => {
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
