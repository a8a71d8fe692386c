/**
 * docs/translation-rules.md rule 33: the text of a freeform tool that was offered as a function is streamed to the
 * client while its arguments arrive, cut anywhere. The stream adds up to the whole reply.
 */
import assert from "node:assert/strict";
import test from "node:test";
import fc from "fast-check";
import { FreeformInput, freeformText } from "../../../../src/convert/reply/freeform-input.ts";
import { convertInOnePush, exchangeOf, framesOf, routeOf, smallBody, sse } from "../translate/rig.ts";

function inPieces(text: string, size: number): string[] {
  const input = new FreeformInput();
  const pieces: string[] = [];
  for (let i = 0; i < text.length; i += size) pieces.push(input.push(text.slice(i, i + size)));
  return [...pieces, input.end()];
}

test("any text is read unchanged, however its JSON is cut and written", () => {
  const texts = fc.string({ unit: "binary", maxLength: 60 });
  const written = fc.constantFrom<(text: string) => string>(
    (text) => JSON.stringify({ input: text }),
    (text) => ` { "input" :\n${JSON.stringify(text)} , "more": 1 }`,
    (text) =>
      `{"input":"${text.replace(/[\s\S]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`)}"}`,
  );
  fc.assert(
    fc.property(texts, written, fc.integer({ min: 1, max: 9 }), (text, write, size) => {
      const pieces = inPieces(write(text), size);
      assert.equal(pieces.join(""), text);
      assert.equal(freeformText(write(text)), text);
      for (const piece of pieces.slice(0, -2))
        assert.ok(!/[\ud800-\udbff]$/.test(piece), "a piece ends within a character");
    }),
    { numRuns: 500 },
  );
});

const OTHERS = ['{"patch":"x"}', "*** Begin Patch", '["input"]', '{"in put":"x"}', '{"input":7}', ""];
for (const text of OTHERS) {
  test(`${text || "an empty text"} is not a freeform input`, () => assert.equal(freeformText(text), undefined));
}

const CUT: readonly (readonly [string, string])[] = [
  ['{"input":"half a li', "half a li"],
  ['{"input":"a\\', "a\\"],
  ['{"input":"a\\u00', "a\\u00"],
  ['{"input":"C:\\Users', "C:\\Users"],
  ['{"input":"a\nb"}', "a\nb"],
  ['{"input":"x\\u12"}', "x\\u12"],
];
for (const [text, expected] of CUT) {
  test(`${JSON.stringify(text)} is read as far as it is complete`, () => {
    for (const size of [1, 3, 100]) assert.equal(inPieces(text, size).join(""), expected);
    assert.equal(freeformText(text), expected);
  });
}

const TOOL = {
  chat: { tools: [{ type: "custom", custom: { name: "patch" } }] },
  responses: { tools: [{ type: "custom", name: "patch" }] },
} as const;

const PIECES = ['{"inp', 'ut":"*** Begin', " Patch\\n", "+a", '"}'];

const UPSTREAMS = {
  chat: [
    ...PIECES.map((piece, i) => ({
      id: "x",
      choices: [
        {
          index: 0,
          delta: {
            tool_calls: [
              {
                index: 0,
                ...(i === 0 ? { id: "c" } : {}),
                function: { ...(i === 0 ? { name: "patch" } : {}), arguments: piece },
              },
            ],
          },
        },
      ],
    })),
    { id: "x", choices: [{ index: 0, delta: {}, finish_reason: "tool_calls" }] },
    "[DONE]",
  ],
  messages: [
    { type: "message_start", message: { id: "m", usage: { input_tokens: 1 } } },
    { type: "content_block_start", index: 0, content_block: { type: "tool_use", id: "c", name: "patch", input: {} } },
    ...PIECES.map((partial_json) => {
      return { type: "content_block_delta", index: 0, delta: { type: "input_json_delta", partial_json } };
    }),
    { type: "content_block_stop", index: 0 },
    { type: "message_delta", delta: { stop_reason: "tool_use" }, usage: { output_tokens: 5 } },
    { type: "message_stop" },
  ],
} as const;

const DIRECTIONS = [
  ["responses", "chat"],
  ["responses", "messages"],
  ["chat", "messages"],
] as const;

for (const [client, upstream] of DIRECTIONS) {
  test(`${client} client, ${upstream} upstream: each piece of a patch is sent when its bytes arrive`, () => {
    const body = smallBody(client, { ...TOOL[client], stream: true });
    const exchange = exchangeOf(client, body, routeOf(upstream, { customTools: false }));
    const converter = exchange.stream();
    const given = UPSTREAMS[upstream].map((payload) => {
      const frames = converter.push(Buffer.from(sse(upstream, [payload])));
      return Buffer.concat(frames.map(({ bytes }) => bytes)).toString();
    });
    const deltas = given.map((text) =>
      framesOf(text)
        .flatMap(({ data }) => deltaOf(data))
        .join(""),
    );
    assert.deepEqual(
      deltas.filter((delta) => delta !== ""),
      ["*** Begin", " Patch\n", "+a"],
    );
    const { text } = convertInOnePush(
      client,
      body,
      routeOf(upstream, { customTools: false }),
      sse(upstream, UPSTREAMS[upstream]),
    );
    assert.ok(client === "chat" || text.includes('"input":"*** Begin Patch\\n+a"'), text);
  });
}

function deltaOf(data: Record<string, unknown>): string[] {
  if (data.type === "response.custom_tool_call_input.delta") return [String(data.delta)];
  const [choice] = (data.choices ?? []) as { delta: { tool_calls?: { custom?: { input?: string } }[] } }[];
  return (choice?.delta.tool_calls ?? []).flatMap((call) => call.custom?.input || []);
}
