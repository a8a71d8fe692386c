/**
 * Recorded streams, and those of every known server, with frames lost, duplicated, moved, changed and mixed with those
 * of other servers: nothing throws, and each client gets exactly one proper end or one failure, around blocks that its
 * strictest reader accepts (ARCHITECTURE.md promise 8, docs/translation-rules.md rules 48 and 52).
 */
import assert from "node:assert/strict";
import test from "node:test";
import fc from "fast-check";
import { openExchange } from "../../../../src/convert/bridge.ts";
import { isRefusal } from "../../../../src/values/errors.ts";
import { parseObject } from "../../../../src/values/json-object.ts";
import { PROTOCOL_NAMES, type Protocol } from "../../../../src/values/protocol.ts";
import { type Dialect, dialects } from "../../../e2e/protocol/dialects/goldens.ts";
import { accumulateChat, accumulateMessages, accumulateResponses } from "../encode/accumulate.ts";
import { PERMITTED } from "../request/translate.ts";
import { clientRequest, convertStream, countingContext, framesOf, routeOf, type StreamOutput } from "./rig.ts";
import { bodyOf, recordings } from "./stream-cases.ts";

interface Damage {
  readonly at: number;
  readonly to: number;
  readonly kind: "lose" | "double" | "move" | "garble" | "omit" | "insert";
}

const damages = fc.array(
  fc.record({
    at: fc.nat(200),
    to: fc.nat(200),
    kind: fc.constantFrom<Damage["kind"][]>("lose", "double", "move", "garble", "omit", "insert"),
  }),
  { minLength: 1, maxLength: 6 },
);

const READERS = { chat: accumulateChat, messages: accumulateMessages, responses: accumulateResponses } as const;

for (const upstream of PROTOCOL_NAMES) {
  test(`${upstream} upstream: a damaged stream has exactly one end or one failure`, () => {
    const streams = fc.constantFrom(...streamsOf(upstream));
    fc.assert(
      fc.property(streams, streams, fc.constantFrom(...PROTOCOL_NAMES), damages, (stream, other, client, hurts) => {
        const request = clientRequest(client, bodyOf(client));
        const exchange = openExchange(request, routeOf(upstream), PERMITTED, countingContext());
        assert.ok(!isRefusal(exchange));
        const told = convertStream(exchange, [damaged(stream, other, hurts)]);
        assertProperEnd(client, client === upstream, told);
      }),
      { numRuns: 1_500, includeErrorInReport: true },
    );
  });
}

/** The recorded streams of a protocol, and those of the servers that are known to differ. */
function streamsOf(upstream: Protocol): readonly string[] {
  const recorded = new Map(recordings(upstream).map(({ name, bytes }) => [name, bytes.toString()]));
  const known = dialects().filter(({ protocol }) => protocol === upstream);
  const streams = known.flatMap(({ stream, frames }) => stream ?? (frames ? framed(frames) : []));
  return [...recorded.values(), ...streams].map((stream) => stream.replaceAll("\r\n", "\n"));
}

function framed(frames: NonNullable<Dialect["frames"]>): string {
  return frames
    .map((frame) => {
      const data = typeof frame.data === "string" ? frame.data : JSON.stringify(frame.data);
      return `${"event" in frame ? `event: ${frame.event}\n` : ""}data: ${data}\n\n`;
    })
    .join("");
}

function damaged(stream: string, other: string, hurts: readonly Damage[]): Buffer {
  const frames = stream.split("\n\n");
  const others = other.split("\n\n");
  for (const { at, to, kind } of hurts) {
    const index = at % Math.max(1, frames.length);
    const frame = frames[index] ?? "";
    const place = to % (frames.length + 1);
    if (kind === "double") frames.splice(place, 0, frame);
    if (kind === "lose" || kind === "move") frames.splice(index, 1);
    if (kind === "move") frames.splice(place, 0, frame);
    if (kind === "insert") frames.splice(place, 0, others[at % others.length] ?? "");
    if (kind === "garble") frames[index] = garbled(frame, to);
    if (kind === "omit") frames[index] = lacking(frame, to);
  }
  return Buffer.from(frames.join("\n\n"));
}

/** The frame without one of the members of its payload. */
function lacking(frame: string, seed: number): string {
  const [head = "", payload = ""] = frame.split(/^data: /m);
  const json = parseObject(payload);
  const names = Object.keys(json ?? {});
  if (!json || names.length === 0) return frame;
  return `${head}data: ${JSON.stringify({ ...json, [names[seed % names.length] as string]: undefined })}`;
}

/** Replaces one value of the frame by another. The result is mostly still JSON. */
function garbled(frame: string, seed: number): string {
  const values = [...frame.matchAll(/:("[^"]*"|\d+|null|\[\]|\{\})/g)];
  const value = values[seed % Math.max(1, values.length)];
  const other = ["null", '"x"', "7", "[]", "{}", '""', "-1", "1e99", '{"a":[1]}'][seed % 9];
  if (!value) return frame;
  return `${frame.slice(0, value.index)}:${other}${frame.slice(value.index + value[0].length)}`;
}

/** @param own whether the server speaks the client's protocol, so that its blocks pass as they are. */
function assertProperEnd(client: Protocol, own: boolean, { text, fault, converter }: StreamOutput): void {
  assert.notEqual(converter.ended, fault !== undefined, "either an end or a fault");
  if (converter.ended) {
    if (!own) READERS[client](text);
    return;
  }
  const [last] = text.split("\n\n").slice(-2);
  const { event, data } = framesOf(last ?? "").at(0) ?? {};
  const failed =
    client === "chat" ? data?.error !== undefined : event === (client === "messages" ? "error" : "response.failed");
  assert(failed, "the last frame of a failed stream is the failure");
  assert.doesNotMatch(text, /^data: (?:\[DONE\]|\{"type":"(?:message_stop|response\.completed)")/m);
}
