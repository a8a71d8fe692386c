/** docs/failure-model.md row 68: however many calls or parts a reply has, what comes after them takes no longer. */
import assert from "node:assert/strict";
import test from "node:test";
import { REPLY_BLOCKS_MAX } from "../../../../src/convert/reply/sink.ts";
import type { Protocol } from "../../../../src/values/protocol.ts";
import { workTimer } from "../../../rig/stopwatch.ts";
import { decoderFor, frameOf, planFor } from "./decoding.ts";

const MANY = REPLY_BLOCKS_MAX - 16;
/** A look at each of them takes at least five times as long. */
const TIMES_MAX = 2.5;

function list<T>(length: number, one: (n: number) => T): readonly T[] {
  return Array.from({ length }, (_, n) => one(n));
}

const completed = (output: readonly object[]) => ({
  type: "response.completed",
  response: { status: "completed", output },
});

/** The event that begins so many, and the one after it. */
const STREAMS: readonly (readonly [string, Protocol, (many: number) => object, object])[] = [
  [
    "a stop reason that comes 60,000 times",
    "chat",
    (many) => ({
      choices: [
        {
          delta: {
            tool_calls: list(many, (n) => ({ index: n, id: `c${n}`, function: { name: "f", arguments: "{" } })),
          },
        },
      ],
    }),
    { choices: list(60_000, () => ({ delta: {}, finish_reason: "stop" })) },
  ],
  [
    "an item that is done 100,000 times",
    "responses",
    (many) => ({
      type: "response.output_item.done",
      output_index: 0,
      item: { type: "message", id: "m", content: list(many, () => ({ type: "output_text", text: "x" })) },
    }),
    completed(list(100_000, () => ({ type: "message", id: "m" }))),
  ],
];

for (const [name, protocol, opening, after] of STREAMS) {
  const frame = frameOf(JSON.stringify(after));
  const workAfter = (many: number): number => {
    const decoder = decoderFor(planFor(protocol));
    decoder.push(frameOf(JSON.stringify(opening(many))));
    const worked = workTimer();
    decoder.push(frame);
    assert.equal(decoder.fault, undefined);
    return worked();
  };
  const leastOf = (many: number) => Math.min(...list(3, () => workAfter(many)));

  test(`${protocol}: ${name}`, () => {
    const [few, many] = [leastOf(1), leastOf(MANY)];
    assert.ok(many < TIMES_MAX * few, `${many} ms behind very many, ${few} ms behind one`);
  });
}
