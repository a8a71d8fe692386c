/**
 * A frame that differs from the last one only in its text is translated by its bytes, without parsing
 * (src/convert/translate/repeated-delta.ts). What the client gets with each push, the counts and the faults must be the
 * same as if each frame were parsed. The tests put a comment between two frames to make the gateway parse the second
 * one.
 */
import assert from "node:assert/strict";
import test from "node:test";
import fc from "fast-check";
import { DeltaTemplate } from "../../../../src/convert/delta-template.ts";
import type { ClientFrames, Exchange, StreamConverter } from "../../../../src/convert/exchange.ts";
import { plainDelta, RepeatedDelta } from "../../../../src/convert/translate/repeated-delta.ts";
import { PROTOCOL_NAMES, type Protocol } from "../../../../src/values/protocol.ts";
import { NO_USAGE } from "../../../../src/values/tokens/usage.ts";
import type { Body } from "../request/translate.ts";
import { exchangeOf, failureOf, REQUEST_ID, routeOf, smallBody } from "./rig.ts";

const COMMENT = Buffer.from(": parse the next\n\n");
const USAGE = { ...NO_USAGE, input: 3, output: 5 };
const STOP = "</stop>";

const DIRECTIONS = PROTOCOL_NAMES.flatMap((upstream) =>
  PROTOCOL_NAMES.filter((client) => client !== upstream).map((client) => ({ upstream, client })),
);

interface Opened {
  /** Whether the gateway has to match a stop string because the upstream cannot. */
  readonly stops?: boolean;
  /** Whether reasoning is hidden from the client. */
  readonly hidden?: boolean;
  /** Whether a chat server leaves reasoning in its text. */
  readonly tags?: boolean;
  /** Whether the client sends reasoning back, or may refer to it. */
  readonly sealed?: boolean;
  /** Whether the name of the model contains characters that JSON escapes. */
  readonly quoted?: boolean;
}

const ASKS: Readonly<Record<Protocol, (opened: Opened) => Body>> = {
  chat: ({ stops, sealed }) => ({
    ...(stops && { stop: [STOP] }),
    ...(sealed && { stream_options: { include_usage: true } }),
  }),
  messages: ({ stops, hidden, sealed }) => ({
    ...(stops && { stop_sequences: [STOP] }),
    thinking: hidden ? { type: "disabled" } : { type: "adaptive", ...(sealed && { display: "omitted" }) },
  }),
  responses: ({ hidden, sealed }) => ({
    ...(!hidden && { reasoning: { summary: "auto" } }),
    ...(sealed && { include: ["reasoning.encrypted_content"], store: true }),
  }),
};

function openExchange(client: Protocol, upstream: Protocol, opened: Opened = {}): Exchange {
  const model = opened.quoted ? 'a "model" \\ "text": "delta": "content":' : "m";
  const body = smallBody(client, { ...ASKS[client](opened), model, stream: true });
  return exchangeOf(client, body, routeOf(upstream, { thinkingInText: opened.tags ? "tags" : "none" }));
}

// ------------------------------------------------------------------------------------------------ frames of upstreams

const quoted = JSON.stringify;

interface Said {
  readonly kind: string;
  readonly text: string;
  /** Whether it belongs to another block, item or choice than the first. */
  readonly other: boolean;
  readonly number: number;
}

/** Members that repeat the text, under the same name or another spelling of it. */
function repeated(kind: string, name: string): readonly [before: string, after: string] {
  if (kind === "twice") return [`"${name}":"first",`, ""];
  if (kind === "spaced name") return ["", `,"${name}" :"last"`];
  if (kind === "escaped name") return ["", `,"\\u00${name.charCodeAt(0).toString(16)}${name.slice(1)}":"last"`];
  return ["", ""];
}

const PAYLOADS: Readonly<Record<Protocol, (said: Said) => string>> = {
  chat({ kind, text, other }) {
    const counts = '"usage":{"prompt_tokens":3,"completion_tokens":5,"total_tokens":8}';
    if (kind === "error") return '{"error":{"message":"no","code":"server_is_overloaded"}}';
    if (kind === "end") return "[DONE]";
    if (kind === "nothing") return '{"choices":null}';
    const name = kind === "reasoning" ? "reasoning_content" : kind === "refusal" ? "refusal" : "content";
    const [before, after] = repeated(kind, name);
    const members = kind === "listed" ? [] : [`${before}"${name}":${quoted(text)}${after}`];
    const call = (more: string) => `"tool_calls":[{"index":${other ? 1 : 0},${more}}]`;
    if (kind === "both") members.push(`"reasoning_content":${quoted(text)}`);
    if (kind === "listed") members.push(`"reasoning_details":[{"type":"reasoning.text","text":${quoted(text)}}]`);
    if (kind === "source") members.push('"annotations":[{"type":"url_citation","url_citation":{"url":"http://a"}}]');
    if (kind === "call") members.push(call(`"id":"c${text.length}","function":{"name":"f","arguments":""}`));
    if (kind === "arguments") members.splice(0, 1, call(`"function":{"arguments":${quoted(text)}}`));
    if (kind === "unknown") members.push('"extra":{"content2":"more"}');
    const logprobs = kind === "logprobs" ? ',"logprobs":{"content":[{"token":"a","logprob":-1}]}' : "";
    const finish = kind === "finish" ? '"stop"' : "null";
    const index = kind === "start" && other ? 1 : 0;
    const choice = `{"index":${index},"delta":{${members}}${logprobs},"finish_reason":${finish}}`;
    const usage =
      kind === "usage" ? `,${counts}` : kind === "padded" ? `,"obfuscation":"${"x".repeat(text.length)}"` : "";
    const model = kind === "other model" ? "another" : "upstream-model";
    return `{"id":"x","object":"chat.completion.chunk","created":1,"model":"${model}","choices":[${choice}]${usage}}`;
  },

  messages({ kind, text, other }) {
    const index = other ? 1 : 0;
    const of = (type: string, members: string) => `{"type":"content_block_${type}","index":${index}${members}}`;
    const opening: Readonly<Record<string, string>> = {
      start: '{"type":"text","text":""}',
      both: `{"type":"text","text":${quoted(text)}}`,
      listed: '{"type":"thinking","thinking":"","signature":""}',
      call: `{"type":"tool_use","id":"c${text.length}","name":"f","input":{}}`,
      "other model": '{"type":"fallback","to":{"model":"another"}}',
    };
    if (opening[kind]) return of("start", `,"content_block":${opening[kind]}`);
    if (kind === "stop") return of("stop", "");
    if (kind === "error") return '{"type":"error","error":{"type":"overloaded_error","message":"no"}}';
    if (kind === "nothing") return '{"type":"ping"}';
    if (kind === "end") return '{"type":"message_stop"}';
    if (kind === "usage") return '{"type":"message_delta","delta":{"stop_reason":null},"usage":{"output_tokens":9}}';
    if (kind === "finish")
      return '{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":9}}';
    const [type, name] = MESSAGES_DELTAS[kind] ?? ["text_delta", "text"];
    const value =
      kind === "source" ? '{"type":"web_search_result_location","url":"http://a","title":"t"}' : quoted(text);
    const [before, after] = repeated(kind, name);
    const more = kind === "unknown" ? ',"extra":"more"' : "";
    return of("delta", `,"delta":{"type":"${type}",${before}"${name}":${value}${after}${more}}`);
  },

  responses({ kind, text, other, number }) {
    const item = kind === "reasoning" || kind === "listed" ? "r" : kind === "call" || kind === "arguments" ? "c" : "i";
    const place = `"item_id":"${item}${other ? 1 : 0}","output_index":${"irc".indexOf(item) * 2 + (other ? 1 : 0)}`;
    const event = (type: string, members: string) => `{"type":"${type}","sequence_number":${number},${members}}`;
    const id = `"id":"${item}${other ? 1 : 0}"`;
    const items: Readonly<Record<string, string>> = {
      start: `{${id},"type":"message","role":"assistant","content":[]}`,
      listed: `{${id},"type":"reasoning","summary":[]}`,
      call: `{${id},"type":"function_call","call_id":"call${number}","name":"f","arguments":""}`,
    };
    if (items[kind]) return event("response.output_item.added", `${place},"item":${items[kind]}`);
    if (kind === "stop") return event("response.output_item.done", `${place},"item":${items.start}`);
    if (kind === "error") return event("error", '"code":"server_is_overloaded","message":"no"');
    if (kind === "nothing") return event("keepalive", '"a":1');
    if (kind === "usage" || kind === "end") {
      const response = '{"id":"r","output":[],"usage":{"input_tokens":3,"output_tokens":5,"total_tokens":8}}';
      return event(`response.${kind === "end" ? "completed" : "in_progress"}`, `"response":${response}`);
    }
    if (kind === "other model") return event("response.in_progress", '"response":{"id":"r","model":"another"}');
    if (kind === "finish")
      return event("response.output_text.done", `${place},"content_index":0,"text":${quoted(text)}`);
    const part = kind === "reasoning" ? '"summary_index":0' : '"content_index":0';
    const delta = kind === "both" ? '{"image":"abc"}' : quoted(text);
    const [before, after] = repeated(kind, "delta");
    const logprobs = kind === "logprobs" ? ',"logprobs":[{"token":"a","logprob":-1}]' : ',"logprobs":[]';
    const noise = kind === "padded" ? `,"obfuscation":"${"x".repeat(1 + (number % 5))}"` : "";
    const more = kind === "unknown" ? ',"extra":"more"' : "";
    const annotation = '"annotation":{"type":"url_citation","url":"http://a"}';
    if (kind === "source") return event("response.output_text.annotation.added", `${place},${part},${annotation}`);
    const type = RESPONSES_DELTAS[kind] ?? "output_text";
    return event(
      `response.${type}.delta`,
      `${place},${part},${before}"delta":${delta}${after}${logprobs}${noise}${more}`,
    );
  },
};

const MESSAGES_DELTAS: Readonly<Record<string, readonly [type: string, name: string]>> = {
  reasoning: ["thinking_delta", "thinking"],
  arguments: ["input_json_delta", "partial_json"],
  source: ["citations_delta", "citation"],
  padded: ["signature_delta", "signature"],
};

const RESPONSES_DELTAS: Readonly<Record<string, string>> = {
  reasoning: "reasoning_summary_text",
  arguments: "function_call_arguments",
  refusal: "refusal",
};

const FIRST: Readonly<Record<Protocol, readonly string[]>> = {
  chat: [
    '{"id":"x","object":"chat.completion.chunk","created":1,"choices":[{"index":0,"delta":{"role":"assistant"}}]}',
  ],
  messages: ['{"type":"message_start","message":{"id":"x","content":[],"usage":{"input_tokens":3,"output_tokens":1}}}'],
  responses: [
    '{"type":"response.created","sequence_number":0,"response":{"id":"r","output":[]}}',
    '{"type":"response.output_item.added","output_index":0,"item":{"id":"i0","type":"message","content":[]}}',
  ],
};

/** A frame, in the usual form or in one that few servers use. */
function frameOf(protocol: Protocol, form: string, said: Said): Buffer {
  const json = PAYLOADS[protocol](said);
  if (form === "broken") return Buffer.from(`data: ${json.slice(0, -1)}\n\n`);
  if (form === "spaced") return Buffer.from(`data:  ${json.replaceAll('":', '":  ')}\n\n`);
  if (form === "zeros") return Buffer.from(`data: ${json.replace(/("sequence_number":)/, "$10")}\n\n`);
  if (form === "named") return Buffer.from(`id: ${said.number}\nevent: a\ndata: ${json}\n\n`);
  if (form === "crlf") return Buffer.from(`data: ${json}\r\n\r\n`);
  if (form === "two lines") return Buffer.from(`data: ${json.slice(0, 1)}\ndata: ${json.slice(1)}\n\n`);
  const bytes = Buffer.from(`data: ${json}\n\n`);
  const at = bytes.indexOf(quoted(said.text).slice(1, -1) || "}");
  if (form === "control" && at > 0) bytes[at] = 0x01;
  if (form === "not utf-8" && at > 0) bytes[at] = 0xff;
  if (form === "half a character" && at > 0) bytes[at] = said.number % 2 ? 0xc3 : 0xa9;
  return bytes;
}

const TEXTS: readonly string[] = [
  ...["a", " word", "42", "é", "日本", "😀", "data: {}", " [DONE]", "x".repeat(40), '{"a":1}', " ", "\u007f", "\u2028"],
  ...["", '"', "\\", "a\nb", "\u0001", '"content":"x"', "\ud83d", "content", "text", "delta", "first", "last"],
  ...["<think>", "</think>", "</st", "op>", STOP],
];
const UNUSUAL: readonly string[] = [
  ...["start", "stop", "call", "arguments", "both", "listed", "source", "refusal", "logprobs", "usage", "unknown"],
  ...["twice", "spaced name", "escaped name", "other model", "nothing", "padded", "reasoning"],
];
const FORMS: readonly string[] = ["spaced", "zeros", "named", "crlf", "two lines", "not utf-8", "half a character"];
/** These end a stream. */
const LAST_KINDS: readonly string[] = ["finish", "end", "error"];
const LAST_FORMS: readonly string[] = ["broken", "control"];

const rarely = <T>(often: fc.Arbitrary<T>, weight: number, rare: fc.Arbitrary<T>) =>
  fc.oneof({ weight, arbitrary: often }, { weight: 1, arbitrary: rare });

/** A stream has few kinds of frames and few texts, so that combinations of them occur. */
const streams = fc
  .record({
    kinds: fc.subarray([...UNUSUAL], { minLength: 1, maxLength: 3 }),
    texts: fc.subarray([...TEXTS], { minLength: 1, maxLength: 5 }),
    forms: fc.subarray([...FORMS], { minLength: 1, maxLength: 2 }),
  })
  .chain(({ kinds, texts, forms }) => {
    const unusual = rarely(fc.constantFrom(...kinds), 30, fc.constantFrom(...LAST_KINDS));
    const form = rarely(fc.constantFrom(...forms), 20, fc.constantFrom(...LAST_FORMS));
    const frame = fc.record({
      kind: rarely(fc.constantFrom("plain", "plain", "reasoning"), 2, unusual),
      form: rarely(fc.constant("plain"), 12, form),
      text: rarely(fc.constantFrom(...texts), 20, fc.string({ unit: "grapheme" })),
      other: rarely(fc.constant(false), 8, fc.constant(true)),
      times: fc.integer({ min: 1, max: 5 }),
      grows: fc.boolean(),
    });
    return fc.array(frame, { minLength: 1, maxLength: 25, size: "max" });
  });
const openings = fc.record({
  stops: fc.boolean(),
  hidden: fc.boolean(),
  tags: fc.boolean(),
  sealed: fc.boolean(),
  quoted: fc.boolean(),
});

type Stream = typeof streams extends fc.Arbitrary<infer S> ? S : never;

function framesOf(protocol: Protocol, stream: Stream): Buffer[] {
  let number = 0;
  const said = stream.flatMap(({ kind, form, text, other, times, grows }) =>
    Array.from({ length: times }, (_, i) =>
      frameOf(protocol, form, { kind, text: `${text}${"x".repeat(grows ? i : 0)}`, other, number: ++number }),
    ),
  );
  return [...FIRST[protocol].map((json) => Buffer.from(`data: ${json}\n\n`)), ...said];
}

// ------------------------------------------------------------------------------------------------ outcomes of a stream

/** Everything that can be observed of a converter, and the frames that it has just returned. */
function state(converter: StreamConverter, frames: readonly ClientFrames[]) {
  const given = frames.map(({ bytes, semantic, terminal }) => ({
    text: Buffer.from(bytes).toString("latin1"),
    semantic,
    terminal,
  }));
  const { fault, ended, opened, draining } = converter;
  return { given, fault, ended, opened, draining, counts: converter.counts() };
}

/** How the stream ends if the upstream's bytes have not ended it. */
type Ending = "end" | "truncate" | "fail";

/** What the client gets after each push and at the end. */
function told(converter: StreamConverter, pushes: readonly Buffer[], ending: Ending, beats: boolean) {
  const states = pushes.map((bytes) => {
    const after = state(converter, converter.push(bytes));
    return { ...after, beat: beats ? Buffer.from(converter.heartbeat() ?? []).toString() : undefined };
  });
  const last = ending === "end" ? converter.end() : ending === "truncate" ? converter.truncate(USAGE) : [];
  const isFailed = converter.fault !== undefined || (ending === "fail" && !converter.ended);
  const failed = isFailed ? converter.fail(failureOf(converter.fault ?? FAULT), REQUEST_ID) : [];
  return { states, last: state(converter, last), failed: Buffer.from(failed).toString() };
}

const FAULT = { cause: "upstream_timeout", code: undefined, reason: "silent" } as const;

/** The outcome regardless of the push in which each byte came. */
function summed({ states, last, failed }: ReturnType<typeof told>) {
  const text = [...states, last].flatMap(({ given }) => given.map((one) => one.text)).join("");
  return { ...last, given: text, failed };
}

function parsed(frames: readonly Buffer[]): Buffer {
  return Buffer.concat(frames.flatMap((frame) => [COMMENT, frame]));
}

/** The frames in groups of the given sizes, repeated. */
function grouped(frames: readonly Buffer[], sizes: readonly number[]): Buffer[][] {
  const groups: Buffer[][] = [];
  for (let at = 0, i = 0; at < frames.length; i++) {
    const size = sizes[i % sizes.length] ?? 1;
    groups.push(frames.slice(at, at + size));
    at += size;
  }
  return groups;
}

function cut(bytes: Buffer, places: readonly number[]): Buffer[] {
  const ends = [...new Set(places.map((place) => place % (bytes.length + 1)))].sort((a, b) => a - b);
  return [...ends, bytes.length].map((end, index) => bytes.subarray(ends[index - 1] ?? 0, end));
}

for (const { upstream, client } of DIRECTIONS) {
  test(`${upstream} to ${client}: each push gives the same output, counts and end as if each frame were parsed`, () => {
    const sizes = fc.array(fc.integer({ min: 1, max: 12 }), { minLength: 1, maxLength: 4 });
    const endings = fc.constantFrom<Ending>("end", "truncate", "fail");
    fc.assert(
      fc.property(streams, sizes, openings, endings, fc.boolean(), (stream, ofPush, opened, ending, beats) => {
        const groups = grouped(framesOf(upstream, stream), ofPush);
        const output = (pushes: Buffer[]) =>
          told(openExchange(client, upstream, opened).stream(), pushes, ending, beats);
        assert.deepEqual(output(groups.map((group) => Buffer.concat(group))), output(groups.map(parsed)));
      }),
      { numRuns: 1_500 },
    );
  });

  test(`${upstream} to ${client}: the outcome is the same however the bytes are cut`, () => {
    const cuts = fc.array(fc.nat(20_000), { maxLength: 12 });
    fc.assert(
      fc.property(streams, cuts, openings, (stream, places, opened) => {
        const frames = framesOf(upstream, stream);
        const output = (pushes: Buffer[]) =>
          summed(told(openExchange(client, upstream, opened).stream(), pushes, "end", false));
        assert.deepEqual(output(cut(Buffer.concat(frames), places)), output([parsed(frames)]));
      }),
      { numRuns: 1_000 },
    );
  });
}

// ------------------------------------------------------------------------------------------------ how much is parsed

/** Frames of one kind in the usual form, after the beginning of the stream. */
function plainFrames(upstream: Protocol, kind: string, count: number, textOf: (i: number) => string): Buffer[] {
  const stream = Array.from({ length: count }, (_, i) =>
    frameOf(upstream, "plain", { kind, text: textOf(i), other: false, number: i + 1 }),
  );
  return [...FIRST[upstream].map((json) => Buffer.from(`data: ${json}\n\n`)), ...stream];
}

for (const { upstream, client } of DIRECTIONS) {
  test(`${upstream} to ${client}: of 200 deltas fewer than six are parsed, in one push or many, shown or hidden`, (t) => {
    const parsing = t.mock.method(JSON, "parse");
    const parses = (pieces: readonly Buffer[], opened: Opened): number => {
      const before = parsing.mock.callCount();
      const converter = openExchange(client, upstream, opened).stream();
      const opening = parsing.mock.callCount();
      for (const piece of pieces) converter.push(piece);
      assert.equal(converter.fault, undefined);
      assert.equal(converter.counts().produced.deltas, 200);
      assert.ok(opening >= before);
      return parsing.mock.callCount() - opening;
    };
    for (const kind of ["plain", "reasoning"]) {
      const ways = [{}, { hidden: true }, { quoted: true }, { tags: kind === "plain" }];
      const ascii = plainFrames(upstream, kind, 200, (i) => `word ${i}`);
      const wide = plainFrames(upstream, kind, 200, (i) => `字 ${i}`);
      for (const opened of ways) {
        for (const frames of [ascii, wide]) {
          for (const pieces of [[Buffer.concat(frames)], frames]) {
            const count = parses(pieces, opened);
            assert.ok(count < 6, `${count} of 200 were parsed`);
          }
          assert.equal(parses([parsed(frames)], opened), frames.length);
        }
      }
    }
  });

  test(`${upstream} to ${client}: a frame with an escape is parsed, and the frames after it are not`, (t) => {
    const parsing = t.mock.method(JSON, "parse");
    const frames = plainFrames(upstream, "plain", 200, (i) => (i % 10 === 5 ? 'a "b"\n' : `word ${i}`));
    const converter = openExchange(client, upstream).stream();
    const before = parsing.mock.callCount();
    const templates = t.mock.method(DeltaTemplate, "of");
    converter.push(Buffer.concat(frames));
    const count = parsing.mock.callCount() - before;
    assert.ok(count >= 20 && count < 26, `${count} of 200 were parsed, 20 of which have escapes`);
    assert.ok(templates.mock.callCount() <= 2, `${templates.mock.callCount()} templates`);
  });

  test(`${upstream} to ${client}: more deltas than a run holds arrive with one push`, () => {
    const frames = plainFrames(upstream, "plain", 1_300, (i) => `word ${i}`);
    const byBytes = told(openExchange(client, upstream).stream(), [Buffer.concat(frames)], "end", false);
    const byParsing = told(openExchange(client, upstream).stream(), [parsed(frames)], "end", false);
    assert.deepEqual(byBytes, byParsing);
  });

  test(`${upstream} to ${client}: the last of two members with one name is used, in any spelling`, () => {
    for (const kind of ["twice", "spaced name", "escaped name"]) {
      for (const text of ["first", "last"]) {
        const frames = plainFrames(upstream, kind, 6, (i) => (i < 3 ? text : "b"));
        const byBytes = told(openExchange(client, upstream).stream(), [Buffer.concat(frames)], "end", false);
        const byParsing = told(openExchange(client, upstream).stream(), [parsed(frames)], "end", false);
        assert.deepEqual(byBytes, byParsing, `${kind}, ${text}`);
      }
    }
  });
}

for (const client of ["messages", "responses"] as const) {
  /** Asserts the same outcome for a chat stream of these kinds and texts, by bytes and by parsing. */
  const assertSame = (said: readonly (readonly [kind: string, text: string])[], opened: Opened): void => {
    const frames = said.map(([kind, text]) => frameOf("chat", "plain", { kind, text, other: false, number: 0 }));
    const output = (bytes: Buffer) => told(openExchange(client, "chat", opened).stream(), [bytes], "end", false);
    assert.deepEqual(output(Buffer.concat(frames)), output(parsed(frames)));
  };

  test(`chat to ${client}: reasoning in the text ends at its tag`, () => {
    const texts = ["<think>", "a", "b", "c", "d", "</think>", "e", "f", "<think>", "g"];
    assertSame(
      texts.map((text) => ["plain", text]),
      { tags: true },
    );
  });

  test(`chat to ${client}: reasoning that a list has sent is not sent again`, () => {
    assertSame([["listed", "a"], ...["b", "b", "b", "a", "c"].map((text) => ["reasoning", text] as const)], {});
  });
}

test("a stream whose frames all differ gets eight templates, and one that changes sometimes gets one for each form", (t) => {
  const chunk = (id: number, i: number) =>
    Buffer.from(`data: {"id":"${id}","choices":[{"index":0,"delta":{"content":"word ${i}"}}]}\n\n`);
  const templates = t.mock.method(DeltaTemplate, "of");
  const parsing = t.mock.method(JSON, "parse");
  const given = (ids: (i: number) => number): number => {
    const converter = openExchange("messages", "chat").stream();
    templates.mock.resetCalls();
    parsing.mock.resetCalls();
    converter.push(Buffer.concat(Array.from({ length: 600 }, (_, i) => chunk(ids(i), i))));
    assert.equal(converter.counts().produced.deltas, 600);
    return templates.mock.callCount();
  };
  assert.equal(
    given((i) => i),
    8,
  );
  assert.equal(parsing.mock.callCount(), 600);
  assert.equal(
    given((i) => Math.floor(i / 20)),
    30,
  );
  assert.equal(parsing.mock.callCount(), 31);
});

test("only a single text or reasoning delta without probabilities is a plain delta", () => {
  const text = { type: "text-delta", key: "1", text: "a", logprobs: undefined } as const;
  const reasoning = { type: "reasoning-delta", key: "1", text: "a" } as const;
  assert.equal(plainDelta([text]), text);
  assert.equal(plainDelta([reasoning]), reasoning);
  for (const events of [[], [text, text], [{ ...text, logprobs: [{}] }], [{ type: "ping" }]] as const) {
    assert.equal(plainDelta(events), undefined);
  }
  assert.equal(plainDelta([{ type: "refusal-delta", key: "1", text: "a" }]), undefined);
});

test("a template is made from at most one client frame, which must have the same text", () => {
  const [came, sent, other] = ['"a":"x"', '"b":"x"', '"b":"y"'].map((json) => Buffer.from(`data: {${json}}\n\n`));
  assert(came && sent && other);
  const of = (frames: readonly Buffer[]) => RepeatedDelta.of(came, { text: "a" }, frames, { text: "b" });
  assert.ok(of([sent]));
  assert.ok(of([]));
  assert.equal(of([sent, sent]), undefined);
  assert.equal(of([other]), undefined);
});

// ------------------------------------------------------------------------------------------------ limits

/** Asserts that both ways end at the same frame when a limit is exceeded. */
function assertSameLimit(client: Protocol, upstream: Protocol, kind: string, chars: number): void {
  const frames = plainFrames(upstream, kind, 60, (i) => `${"w ".repeat(chars / 2)}${i}`);
  const byBytes = openExchange(client, upstream).stream();
  const byParsing = openExchange(client, upstream).stream();
  let pushed = 0;
  for (const frame of frames) {
    const given = [byBytes.push(frame), byParsing.push(parsed([frame]))].map((one) => one[0]?.bytes.length);
    assert.equal(given[0], given[1]);
    assert.deepEqual(byBytes.fault, byParsing.fault);
    if (byBytes.fault) break;
    pushed++;
  }
  assert.ok(byBytes.fault && pushed > 40, `${kind}: ended after ${pushed}`);
  assert.equal(byBytes.counts().produced.bytes, byParsing.counts().produced.bytes);
}

for (const { upstream, client } of DIRECTIONS) {
  test(`${upstream} to ${client}: with more reasoning than the limit both ways end at the same delta`, () => {
    assertSameLimit(client, upstream, "reasoning", 300_000);
  });
}

for (const { upstream, client } of DIRECTIONS) {
  test(`${upstream} to ${client}: an event over the size limit is refused after deltas that were passed by their bytes`, () => {
    const small = plainFrames(upstream, "plain", 5, (i) => `word ${i}`);
    const frames = [...small, ...plainFrames(upstream, "plain", 1, () => "x".repeat(5_000_000)).slice(-1)];
    const byBytes = told(openExchange(client, upstream).stream(), [Buffer.concat(frames)], "end", false);
    const byParsing = told(openExchange(client, upstream).stream(), [parsed(frames)], "end", false);
    assert.equal(byBytes.last.fault?.reason, "an event is over the size limit");
    assert.deepEqual(byBytes, byParsing);
  });
}

test("nothing is sent after the event that exceeds a limit", () => {
  const large = plainFrames("chat", "plain", 60, (i) => `${"w ".repeat(600_000)}${i}`);
  const converter = openExchange("messages", "chat").stream();
  for (const frame of large) {
    if (converter.fault) break;
    const after = plainFrames("chat", "plain", 1, () => "one more").slice(-1);
    const given = Buffer.concat(converter.push(Buffer.concat([frame, ...after])).map(({ bytes }) => bytes));
    assert.equal(given.includes("one more"), converter.fault === undefined);
  }
  assert.ok(converter.fault);
});

test("with more output than the limit both ways end at the same delta", () => {
  assertSameLimit("messages", "chat", "plain", 1_200_000);
});
