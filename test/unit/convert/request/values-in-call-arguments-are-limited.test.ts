/**
 * docs/errors.md, "What a body may hold": the limit on the number of values sees the JSON in the arguments of tool
 * calls as one text, although it is parsed for a server of another protocol. So its values are counted before it is
 * parsed.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { openExchange } from "../../../../src/convert/bridge.ts";
import { parseArguments } from "../../../../src/convert/rules/tool-wrap.ts";
import { isRefusal } from "../../../../src/values/errors.ts";
import { isJsonFault, scanJson } from "../../../../src/wire/json.ts";
import { CONTEXT, PERMITTED, routeTo } from "./translate.ts";

const call = (id: number, name: string, input: string, type = "function") => ({
  role: "assistant",
  tool_calls: [
    type === "function"
      ? { id: `c${id}`, type, function: { name, arguments: input } }
      : { id: `c${id}`, type, custom: { name, input } },
  ],
});

/** The cause of the refusal, if any. */
function refusalOf(inputs: readonly string[], upstream: "chat" | "messages", type?: string): string | undefined {
  const messages = [
    { role: "user", content: "x" },
    ...inputs.flatMap((input, id) => [
      call(id, "f", input, type),
      { role: "tool", tool_call_id: `c${id}`, content: "y" },
    ]),
  ];
  const json = { model: "m", messages };
  const body = Buffer.from(JSON.stringify(json));
  const scan = scanJson(body);
  assert.ok(!isJsonFault(scan));
  const request = { protocol: "chat", body, json, scan, model: "m", stream: false } as const;
  const opened = openExchange(request, routeTo(upstream), PERMITTED, CONTEXT);
  return isRefusal(opened) ? opened.cause : undefined;
}

const numbers = (count: number): string => `{"a":[${"1,".repeat(count - 1)}1]}`;

test("the values of all calls together are limited, whatever they are", () => {
  assert.equal(refusalOf([numbers(49_000)], "messages"), undefined);
  assert.equal(refusalOf([numbers(51_000)], "messages"), "body_too_large");
  assert.equal(refusalOf([numbers(26_000), numbers(26_000)], "messages"), "body_too_large");
  const names = Array.from({ length: 26_000 }, (_, at) => `"k${at}":1`).join(",");
  assert.equal(refusalOf([`{${names}}`], "messages"), "body_too_large");
  assert.equal(refusalOf([`{"a":${"[".repeat(60_000)}`], "messages"), "body_too_large");
});

test("characters inside strings and the text of a freeform tool do not count as values", () => {
  const text = JSON.stringify({ rows: 'a,b:[{"\\,,'.repeat(60_000) });
  assert.equal(refusalOf([text], "messages"), undefined);
  assert.equal(refusalOf([numbers(60_000)], "messages", "custom"), undefined);
});

test("a server of the client's own protocol gets the arguments unparsed", () => {
  assert.equal(refusalOf([numbers(60_000)], "chat"), undefined);
});

test("a request with too many calls is not translated", () => {
  const few = (count: number) => Array.from({ length: count }, () => "{}");
  assert.equal(refusalOf(few(7_000), "messages"), undefined);
  assert.equal(refusalOf(few(11_000), "messages"), "body_too_large");
  assert.equal(refusalOf(few(11_000), "chat"), undefined);
});

test("arguments above the limit in a reply of a model stay a text", () => {
  const long = numbers(51_000);
  assert.deepEqual(parseArguments(long), { _raw_arguments: long });
  assert.equal((parseArguments(numbers(49_000)).a as number[]).length, 49_000);
});
