/**
 * Chat servers number their calls in many ways. Each delta is assigned to its call (docs/translation-rules.md rule 54,
 * docs/failure-model.md row 68).
 */
import assert from "node:assert/strict";
import test from "node:test";
import { decodePayloads, gather, planFor } from "./decoding.ts";

const PLAN = planFor("chat");

type Entry = { index?: unknown; id?: string; name?: string; args?: unknown };

function callsOf(chunks: readonly (readonly Entry[])[]): readonly string[] {
  const payloads = chunks.map((entries) => ({
    choices: [
      {
        delta: {
          tool_calls: entries.map(({ index, id, name, args }) => ({ index, id, function: { name, arguments: args } })),
        },
      },
    ],
  }));
  const end = { choices: [{ delta: {}, finish_reason: "tool_calls" }] };
  const { items } = gather(decodePayloads([...payloads, end, "[DONE]"], PLAN).events);
  return items.map((item) => (item.type === "tool-call" ? `${item.id} ${item.tool.name} ${item.input}` : item.type));
}

const ONE = '{"x":1}';
const TWO = '{"y":2}';

test("calls are told apart by index, with gaps and from any number on", () => {
  assert.deepEqual(
    callsOf([
      [{ index: 1, id: "a", name: "f", args: "" }],
      [{ index: 7, id: "b", name: "g", args: TWO }],
      [{ index: 1, args: ONE }],
    ]),
    [`a f ${ONE}`, `b g ${TWO}`],
  );
});

test("calls that all have index 0 are told apart by id", () => {
  assert.deepEqual(
    callsOf([
      [{ index: 0, id: "a", name: "f", args: '{"x"' }],
      [{ index: 0, args: ":1}" }],
      [{ index: 0, id: "b", name: "g", args: '{"y"' }],
      [{ index: 0, id: "b", args: ":2}" }],
    ]),
    [`a f ${ONE}`, `b g ${TWO}`],
  );
});

test("a call without id whose name is repeated with each piece of its arguments is one call", () => {
  assert.deepEqual(callsOf([[{ index: 0, name: "f", args: '{"x"' }], [{ index: 0, name: "f", args: ":1}" }]]), [
    `call_${"9".repeat(24)} f ${ONE}`,
  ]);
});

test("calls with index 0 and no id are told apart by complete arguments", () => {
  assert.deepEqual(callsOf([[{ index: 0, name: "f", args: ONE }], [{ index: 0, name: "g", args: TWO }]]), [
    `call_${"9".repeat(24)} f ${ONE}`,
    `call_${"9".repeat(24)} g ${TWO}`,
  ]);
});

test("without an index the same id or none continues a call, and a new id begins one", () => {
  assert.deepEqual(
    callsOf([
      [{ id: "a", name: "f", args: '{"x"' }],
      [{ args: ":" }],
      [{ id: "b", name: "g", args: '{"y"' }],
      [{ id: "a", args: "1}" }],
      [{ id: "b", args: ":2}" }],
    ]),
    [`a f ${ONE}`, `b g ${TWO}`],
  );
});

test("an index that is not a whole number counts as missing", () => {
  for (const index of ["0", -1, 1.5, null, 1e300]) {
    assert.deepEqual(callsOf([[{ index, id: "a", name: "f", args: '{"x":' }], [{ index, args: "1}" }]]), [
      `a f ${ONE}`,
    ]);
  }
});

test("the name may come later, in a delta that repeats the id, or be empty at first", () => {
  assert.deepEqual(
    callsOf([
      [{ index: 0, id: "a", name: "", args: '{"x"' }],
      [{ index: 0, id: "a", args: ":" }],
      [{ index: 0, name: "f", args: "1}" }],
    ]),
    [`a f ${ONE}`],
  );
});

test("a call without name and arguments starts once it has a name, whatever other calls have sent before", () => {
  assert.deepEqual(
    callsOf([
      [{ index: 0, id: "a" }],
      [{ index: 1, id: "b", name: "g", args: TWO }],
      [{ index: 2, id: "c", name: "h", args: TWO }],
      [{ index: 0, name: "f", args: ONE }],
    ]),
    [`b g ${TWO}`, `c h ${TWO}`, `a f ${ONE}`],
  );
});

test("the id may come later, or be empty, or missing", () => {
  assert.deepEqual(callsOf([[{ index: 0, id: "", name: "f", args: '{"x":' }], [{ index: 0, id: "a", args: "1}" }]]), [
    `a f ${ONE}`,
  ]);
  assert.deepEqual(callsOf([[{ index: 0, name: "f", args: ONE }]]), [`call_${"9".repeat(24)} f ${ONE}`]);
});

test("two calls never share an id", () => {
  assert.deepEqual(
    callsOf([[{ index: 0, id: "a", name: "f", args: ONE }], [{ index: 1, id: "a", name: "g", args: TWO }]]),
    [`a f ${ONE}`, `call_${"9".repeat(24)} g ${TWO}`],
  );
});

test("one chunk may have several complete calls", () => {
  assert.deepEqual(
    callsOf([
      [
        { index: 0, id: "a", name: "f", args: ONE },
        { index: 1, id: "b", name: "g", args: TWO },
      ],
    ]),
    [`a f ${ONE}`, `b g ${TWO}`],
  );
});

test("arguments may be an object, are {} if blank, and stay as they are if they are not JSON", () => {
  assert.deepEqual(callsOf([[{ index: 0, id: "a", name: "f", args: { x: 1 } }]]), [`a f ${ONE}`]);
  assert.deepEqual(callsOf([[{ index: 0, id: "a", name: "f", args: " \n" }]]), ["a f {}"]);
  assert.deepEqual(callsOf([[{ index: 0, id: "a", name: "f" }]]), ["a f {}"]);
  assert.deepEqual(callsOf([[{ index: 0, id: "a", name: "f", args: '{"x": tru' }], [{ index: 0, args: "\u0000]" }]]), [
    'a f {"x": tru\u0000]',
  ]);
});

test("a complete call ends when the next begins, so that the next does not wait", () => {
  const entry = (index: number, id: string) => ({
    choices: [{ delta: { tool_calls: [{ index, id, function: { name: "f", arguments: ONE } }] } }],
  });
  const { events } = decodePayloads(
    [entry(0, "a"), entry(1, "b"), { choices: [{ delta: {}, finish_reason: "stop" }] }],
    PLAN,
  );
  const types = events.filter((event) => event.type.startsWith("tool-")).map((event) => event.type);
  assert.deepEqual(types, ["tool-start", "tool-delta", "tool-end", "tool-start", "tool-delta", "tool-end"]);
});

test("the deprecated function_call is a call", () => {
  const say = (function_call: object) => ({ choices: [{ delta: { function_call } }] });
  const end = { choices: [{ delta: {}, finish_reason: "function_call" }] };
  const { events } = decodePayloads([say({ name: "f", arguments: "" }), say({ arguments: ONE }), end, "[DONE]"], PLAN);
  const { items, stop } = gather(events);
  assert.deepEqual(items, [
    { type: "tool-call", id: `call_${"9".repeat(24)}`, tool: { kind: "function", name: "f" }, input: ONE },
  ]);
  assert.equal(stop.reason, "tool-calls");
});
