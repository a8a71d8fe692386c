/**
 * Recorded streams with frames lost, duplicated, moved and changed: nothing throws, and each client gets exactly one
 * proper end or one failure, around blocks that its strictest reader accepts (ARCHITECTURE.md promise 8,
 * docs/translation-rules.md rules 48 and 52).
 */
import assert from "node:assert/strict";
import test from "node:test";
import fc from "fast-check";
import { PROTOCOL_NAMES, type Protocol } from "../../../../src/values/protocol.ts";
import { accumulateChat, accumulateMessages, accumulateResponses } from "../encode/accumulate.ts";
import { convertStream, exchangeOf, framesOf, routeOf, type StreamOutput } from "./rig.ts";
import { bodyOf, recordings } from "./stream-cases.ts";

type Damage = { readonly at: number; readonly to: number; readonly kind: "lose" | "double" | "move" | "garble" };

const damages = fc.array(
  fc.record({
    at: fc.nat(200),
    to: fc.nat(200),
    kind: fc.constantFrom<Damage["kind"][]>("lose", "double", "move", "garble"),
  }),
  { minLength: 1, maxLength: 6 },
);

const READERS = { chat: accumulateChat, messages: accumulateMessages, responses: accumulateResponses } as const;

for (const upstream of PROTOCOL_NAMES) {
  test(`${upstream} upstream: a damaged stream has exactly one end or one failure`, () => {
    const all = recordings(upstream);
    fc.assert(
      fc.property(fc.nat(), damages, (pick, hurts) => {
        const recording = all[pick % all.length];
        assert(recording);
        const { client, bytes } = recording;
        const told = convertStream(exchangeOf(client, bodyOf(client), routeOf(upstream)), [
          damaged(bytes.toString(), hurts),
        ]);
        assertProperEnd(client, told);
      }),
      { numRuns: 1_500, includeErrorInReport: true },
    );
  });
}

function damaged(stream: string, hurts: readonly Damage[]): Buffer {
  const frames = stream.replaceAll("\r\n", "\n").split("\n\n");
  for (const { at, to, kind } of hurts) {
    const index = at % Math.max(1, frames.length);
    const frame = frames[index] ?? "";
    const place = to % (frames.length + 1);
    if (kind === "double") frames.splice(place, 0, frame);
    if (kind === "lose" || kind === "move") frames.splice(index, 1);
    if (kind === "move") frames.splice(place, 0, frame);
    if (kind === "garble") frames[index] = garbled(frame, to);
  }
  return Buffer.from(frames.join("\n\n"));
}

/** Replaces one value of the frame by another. The result is mostly still JSON. */
function garbled(frame: string, seed: number): string {
  const values = [...frame.matchAll(/:("[^"]*"|\d+|null|\[\]|\{\})/g)];
  const value = values[seed % Math.max(1, values.length)];
  const other = ["null", '"x"', "7", "[]", "{}", '""', "-1", "1e99", '{"a":[1]}'][seed % 9];
  if (!value) return frame;
  return `${frame.slice(0, value.index)}:${other}${frame.slice(value.index + value[0].length)}`;
}

function assertProperEnd(client: Protocol, { text, fault, converter }: StreamOutput): void {
  assert.notEqual(converter.ended, fault !== undefined, "either an end or a fault");
  if (converter.ended) {
    READERS[client](text);
    return;
  }
  const { event, data } = framesOf(text).at(-1) ?? {};
  const failed =
    client === "chat" ? data?.error !== undefined : event === (client === "messages" ? "error" : "response.failed");
  assert(failed, "the last frame of a failed stream is the failure");
  assert.doesNotMatch(text, /\[DONE\]|"type":"message_stop"|"type":"response\.completed"/);
}
