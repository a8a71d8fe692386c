/**
 * A frame that differs from the last one only in its text is passed on by its bytes, without parsing
 * (src/convert/delta-template.ts). The bytes sent to the client, the counts and the faults must be the same as if each
 * frame were parsed. The tests put a comment between two frames to make the gateway parse the second one.
 */
import assert from "node:assert/strict";
import test from "node:test";
import fc from "fast-check";
import { DeltaTemplate } from "../../../src/convert/delta-template.ts";
import type { Exchange } from "../../../src/convert/exchange.ts";
import { openPassthrough } from "../../../src/convert/passthrough/passthrough.ts";
import { isRefusal } from "../../../src/values/errors.ts";
import { PROTOCOL_NAMES, type Protocol } from "../../../src/values/protocol.ts";
import { NO_USAGE } from "../../../src/values/tokens/usage.ts";
import { clientRequest, convertStream, routeOf, type StreamOutput, smallBody } from "./translate/rig.ts";

const USAGE = { ...NO_USAGE, input: 3, output: 5 };
const COMMENT = ": parse the next\n\n";

interface Opened {
  readonly openEnded?: boolean;
  /** Whether the upstream knows the model by another name. */
  readonly renamed?: boolean;
  readonly choices?: number;
}

function openExchange(protocol: Protocol, { openEnded = false, renamed = false, choices = 1 }: Opened = {}): Exchange {
  const permitted = { outputLimit: openEnded ? 1_000 : undefined, inputEstimate: 7, strict: false, openEnded };
  const request = clientRequest(
    protocol,
    smallBody(protocol, { stream: true, ...(protocol === "chat" ? { n: choices } : {}) }),
  );
  const exchange = openPassthrough(
    request,
    { ...routeOf(protocol), upstreamModel: renamed ? "m-upstream" : "m" },
    permitted,
    {} as never,
  );
  if (isRefusal(exchange)) throw new Error(JSON.stringify(exchange.facts));
  return exchange;
}

/** What can be observed of a stream: its bytes, its counts, its end. */
function outcome({ text, fault, converter }: StreamOutput) {
  return { text: text.replaceAll(COMMENT, ""), fault, ended: converter.ended, counts: converter.counts() };
}

const texts = fc.oneof(
  { weight: 6, arbitrary: fc.constantFrom("a", " word", "42", "é", "日本", "😀", "data: {}", " [DONE]") },
  { weight: 1, arbitrary: fc.constantFrom("", '"', "\\", "\n", "\u0001", '"content":"x"', "\u2028") },
  { weight: 1, arbitrary: fc.string({ unit: "grapheme" }) },
);
/** How a frame differs from the plain delta of its protocol. */
const kinds = fc.oneof(
  { weight: 12, arbitrary: fc.constant("plain" as const) },
  {
    weight: 3,
    arbitrary: fc.constantFrom(
      "reasoning",
      "usage",
      "other choice",
      "other model",
      "known",
      "unknown",
      "twice",
      "spaced",
      "usage elsewhere",
    ),
  },
  {
    weight: 1,
    arbitrary: fc.constantFrom(
      ...(["finish", "call", "crlf", "named", "broken", "not utf-8", "zeros", "control"] as const),
      ...(["half a character", "comment", "error", "reordered", "huge", "split data", "carriage returns"] as const),
    ),
  },
);
const events = fc.array(fc.record({ kind: kinds, text: texts, times: fc.integer({ min: 1, max: 4 }) }), {
  minLength: 1,
  maxLength: 25,
});

const openings = fc.record({
  openEnded: fc.boolean(),
  renamed: fc.boolean(),
  choices: fc.constantFrom(1, 2),
});

const quoted = JSON.stringify;

/** The JSON of a delta as servers write it. */
const DELTA: Readonly<Record<Protocol, (kind: string, text: string, number: number) => string>> = {
  chat(kind, text) {
    const name = kind === "reasoning" ? "reasoning_content" : "content";
    const delta = kind === "twice" ? `"content":"first","content":${quoted(text)}` : `"${name}":${quoted(text)}`;
    const call = kind === "call" ? ',"tool_calls":[{"index":0,"id":"c","function":{"name":"f","arguments":"{}"}}]' : "";
    const counts = '"usage":{"prompt_tokens":3,"completion_tokens":5,"total_tokens":8}';
    const usage = kind === "usage" ? `,${counts}` : kind === "usage elsewhere" ? `,"x_groq":{${counts}}` : "";
    const index = kind === "other choice" || (kind === "usage" && text.length > 2) ? 1 : 0;
    const finish = kind === "finish" ? '"stop"' : "null";
    const more = kind === "known" ? ',"obfuscation":"xyz"' : kind === "unknown" ? ',"extra":{"content2":"more"}' : "";
    const model = kind === "other model" ? "another" : "m";
    const choice = `{"index":${index},"delta":{${delta}${call}${more}},"finish_reason":${finish}}`;
    return `{"id":"x","object":"chat.completion.chunk","created":1,"model":"${model}","choices":[${choice}]${usage}${more}}`;
  },
  messages(kind, text) {
    const [type, name] =
      kind === "reasoning"
        ? ["thinking_delta", "thinking"]
        : kind === "call"
          ? ["input_json_delta", "partial_json"]
          : ["text_delta", "text"];
    const index = kind === "other choice" ? 1 : 0;
    const twice = kind === "twice" ? `"${name}":"first",` : "";
    const more = kind === "unknown" ? ',"extra":"more"' : "";
    if (kind === "usage") return '{"type":"message_delta","delta":{"stop_reason":null},"usage":{"output_tokens":9}}';
    if (kind === "finish")
      return '{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":19}}';
    return `{"type":"content_block_delta","index":${index},"delta":{"type":"${type}",${twice}"${name}":${quoted(text)}${more}}}`;
  },
  responses(kind, text, number) {
    const type = kind === "reasoning" ? "response.reasoning_summary_text.delta" : "response.output_text.delta";
    const index = kind === "other choice" ? 1 : 0;
    const twice = kind === "twice" ? '"delta":"first",' : "";
    const more = kind === "known" ? ',"obfuscation":"xyz"' : kind === "unknown" ? ',"extra":"more"' : "";
    if (kind === "usage" || kind === "finish") {
      const response = '{"id":"r","output":[],"usage":{"input_tokens":3,"output_tokens":5,"total_tokens":8}}';
      return `{"type":"response.${kind === "finish" ? "completed" : "in_progress"}","sequence_number":${number},"response":${response}}`;
    }
    const delta = kind === "call" ? '{"image":"abc"}' : quoted(text);
    return `{"type":"${type}","item_id":"i","output_index":${index},"content_index":0,${twice}"delta":${delta},"sequence_number":${number}${more}}`;
  },
};

const FIRST: Readonly<Record<Protocol, string>> = {
  chat: '{"id":"x","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"role":"assistant"}}]}',
  messages:
    '{"type":"message_start","message":{"id":"x","model":"m","content":[],"usage":{"input_tokens":3,"output_tokens":1}}}',
  responses: [
    '{"type":"response.created","sequence_number":0,"response":{"id":"r","model":"m","output":[]}}',
    '{"type":"response.output_item.added","output_index":0,"item":{"id":"i","type":"message","role":"assistant","content":[]}}',
    '{"type":"response.content_part.added","item_id":"i","output_index":0,"content_index":0,"part":{"type":"output_text","text":""}}',
  ].join("\n\ndata: "),
};

function frameOf(protocol: Protocol, kind: string, text: string, number: number): Buffer {
  if (kind === "comment") return Buffer.from(`: ${number}\n\n`);
  if (kind === "error") return Buffer.from('data: {"type":"error","error":{"type":"overloaded_error"}}\n\n');
  const said = kind === "huge" ? text.repeat(2_000) : text;
  const json =
    kind === "reordered" ? reordered(DELTA[protocol](kind, said, number)) : DELTA[protocol](kind, said, number);
  if (kind === "split data") return Buffer.from(`data: ${json.replace(",", ",\ndata: ")}\n\n`);
  if (kind === "carriage returns") return Buffer.from(`data: ${json}\r\r`);
  if (kind === "broken") return Buffer.from(`data: ${json.slice(0, -1)}\n\n`);
  if (kind === "spaced") return Buffer.from(`data:  ${json.replaceAll('":', '":  ')}\n\n`);
  if (kind === "zeros") return Buffer.from(`data: ${json.replace(/("sequence_number":)/, "$10")}\n\n`);
  if (kind === "named") return Buffer.from(`id: ${number}\nevent: a\ndata: ${json}\n\n`);
  if (kind === "crlf") return Buffer.from(`data: ${json}\r\n\r\n`);
  const bytes = Buffer.from(`data: ${json}\n\n`);
  // The two halves of a character, in one delta each.
  if (kind === "half a character")
    return Buffer.from(bytes.toString().replaceAll("é", number % 2 ? "Ã" : "©"), "latin1");
  if (kind === "not utf-8" || kind === "control") {
    const at = bytes.indexOf(quoted(text).slice(1, -1) || "}");
    if (at > 0 && text.length > 0) bytes[at] = kind === "control" ? 0x01 : 0xff;
  }
  return bytes;
}

/** The same members in another order, down to the innermost. */
function reordered(json: string): string {
  return JSON.stringify(
    JSON.parse(json, (_, value) =>
      value !== null && typeof value === "object" && !Array.isArray(value)
        ? Object.fromEntries(Object.entries(value).reverse())
        : value,
    ),
  );
}

/** The same frames, each of which has to be parsed. */
function parse(frames: readonly Buffer[]): Buffer[] {
  return frames.flatMap((frame) => [Buffer.from(COMMENT), frame]);
}

/** The bytes that end a stream whose hold cannot be extended. */
function truncated(exchange: Exchange, pieces: readonly Buffer[]): string {
  const converter = exchange.stream();
  for (const piece of pieces) if (!converter.ended && !converter.fault) converter.push(piece);
  return Buffer.concat(converter.truncate(USAGE).map(({ bytes }) => bytes)).toString();
}

function cut(bytes: Buffer, places: readonly number[]): Buffer[] {
  const ends = [...new Set(places.map((place) => place % (bytes.length + 1)))].sort((a, b) => a - b);
  return [...ends, bytes.length].map((end, index) => bytes.subarray(ends[index - 1] ?? 0, end));
}

for (const protocol of PROTOCOL_NAMES) {
  test(`${protocol}: bytes, counts and end are the same as if each frame were parsed, however the stream is cut`, () => {
    const cuts = fc.array(fc.nat(20_000), { maxLength: 12 });
    fc.assert(
      fc.property(events, cuts, openings, (list, places, opened) => {
        let number = 0;
        const frames = list.flatMap(({ kind, text, times }) =>
          Array.from({ length: times }, (_, i) => frameOf(protocol, kind, `${text}${"x".repeat(i)}`, ++number)),
        );
        const all = [Buffer.from(`data: ${FIRST[protocol]}\n\n`), ...frames];
        const parsed = convertStream(openExchange(protocol, opened), parse(all));
        const byBytes = convertStream(openExchange(protocol, opened), cut(Buffer.concat(all), places));
        assert.deepEqual(outcome(byBytes), outcome(parsed));
        assert.deepEqual(
          truncated(openExchange(protocol, opened), all),
          truncated(openExchange(protocol, opened), parse(all)),
        );
      }),
      { numRuns: 3_000 },
    );
  });

  test(`${protocol}: of 200 deltas fewer than five are parsed, in one chunk or each in its own`, (t) => {
    const parsing = t.mock.method(JSON, "parse");
    const frames = Array.from({ length: 200 }, (_, i) => frameOf(protocol, "plain", `word ${i}`, i + 1));
    const first = Buffer.from(`data: ${FIRST[protocol]}\n\n`);
    const both = [{}, { renamed: true }];
    for (const pieces of [[Buffer.concat([first, ...frames])], [first, ...frames]]) {
      for (const opened of both) {
        const before = parsing.mock.callCount();
        const { text } = convertStream(openExchange(protocol, opened), pieces);
        assert.ok(text.includes("word 199"));
        const count = parsing.mock.callCount() - before;
        assert.ok(count < 5, `${count} of 200 were parsed`);
      }
    }
  });

  test(`${protocol}: more deltas than a run holds, with all kinds of texts, arrive in one chunk`, () => {
    for (const renamed of [false, true]) {
      const texts = ["a", " word", "é", "日本", "😀", "42"];
      const frames = Array.from({ length: 1_300 }, (_, i) => frameOf(protocol, "known", texts[i % 6] ?? "", i + 1));
      const all = [Buffer.from(`data: ${FIRST[protocol]}\n\n`), ...frames];
      const byBytes = convertStream(openExchange(protocol, { renamed }), [Buffer.concat(all)]);
      assert.deepEqual(outcome(byBytes), outcome(convertStream(openExchange(protocol, { renamed }), parse(all))));
    }
  });

  test(`${protocol}: each push gives the same output and counts as with parsing`, () => {
    const frames = Array.from({ length: 40 }, (_, i) => frameOf(protocol, "plain", i % 3 ? "word" : "wörd", i + 1));
    const all = [Buffer.from(`data: ${FIRST[protocol]}\n\n`), ...frames];
    const byBytes = openExchange(protocol).stream();
    const byParsing = openExchange(protocol).stream();
    for (const frame of all) {
      const given = [byBytes.push(frame), byParsing.push(Buffer.concat(parse([frame])))].map((one) =>
        one.map(({ bytes, ...rest }) => ({ ...rest, text: Buffer.from(bytes).toString().replaceAll(COMMENT, "") })),
      );
      assert.deepEqual(given[0], given[1]);
      assert.deepEqual(byBytes.counts(), byParsing.counts());
    }
  });

  test(`${protocol}: counts are the same whether or not they were read before`, () => {
    const kinds = ["plain", "plain", "usage", "plain", "known", "plain", "finish", "usage"];
    const frames = kinds.map((kind, i) => frameOf(protocol, kind, "a", i + 1));
    const end = Buffer.from(protocol === "messages" ? 'data: {"type":"message_stop"}\n\n' : "data: [DONE]\n\n");
    const all = [Buffer.from(`data: ${FIRST[protocol]}\n\n`), ...frames, end];
    const asked = openExchange(protocol).stream();
    for (let i = 0; i < all.length; i++) {
      asked.push(all[i] ?? end);
      const fresh = openExchange(protocol).stream();
      fresh.push(Buffer.concat(all.slice(0, i + 1)));
      assert.deepEqual(asked.counts(), fresh.counts());
    }
    assert.equal(asked.counts().final, true);
  });

  test(`${protocol}: an event over the size limit is refused after deltas that were passed by their bytes`, () => {
    const frames = ["a", "b", "c", "x".repeat(5_000_000)].map((text, i) => frameOf(protocol, "plain", text, i + 1));
    const all = [Buffer.from(`data: ${FIRST[protocol]}\n\n`), ...frames];
    const { fault } = convertStream(openExchange(protocol), [Buffer.concat(all)]);
    assert.equal(fault?.reason, "an event is over the size limit");
  });
}

test("a frame that is incomplete or differs from the template in any other byte does not match it", () => {
  for (const last of ["", ',"n":"ab"', ',"number":12', ',"x":true']) {
    const frame = Buffer.from(`data: {"id":"chunk-0123456789","text":"words"${last}}\n\n`);
    const varying = {
      text: "text",
      number: last.includes("number") ? "number" : undefined,
      noise: last.includes('"n"') ? "n" : undefined,
    };
    const template = DeltaTemplate.of(frame, frame, varying);
    assert(template);
    assert.equal(template.run(frame, 0, true)?.end, frame.length);
    const varies = (at: number) =>
      [/"text":"(words)"/d, /"n":"(ab)"/d, /"number":(12)/d].some((form) => {
        const [start, end] = form.exec(frame.toString())?.indices?.[1] ?? [0, 0];
        return at >= start && at < end;
      });
    for (let at = 0; at < frame.length; at++) {
      assert.equal(template.run(frame.subarray(0, at), 0, true), undefined);
      if (varies(at)) continue;
      for (const bit of [1, 0x20, 0x80]) {
        const other = Buffer.from(frame);
        other[at] = (other[at] ?? 0) ^ bit;
        assert.equal(template.fits(other, false), false, `${other} is taken for ${frame}`);
        const run = template.run(Buffer.concat([frame, other, frame]), 0, true);
        assert.deepEqual([run?.deltas, run?.end], [1, frame.length]);
      }
    }
  }
});

/** A first event that names the upstream's model. */
const NAMED: Readonly<Record<Protocol, string>> = {
  chat: '{"id":"c1","model":"m-upstream","choices":[{"index":0,"delta":{"role":"assistant"}}]}',
  messages:
    '{"type":"message_start","message":{"id":"m1","model":"m-upstream","content":[],"usage":{"input_tokens":1,"output_tokens":1}}}',
  responses: '{"type":"response.created","sequence_number":0,"response":{"id":"r1","model":"m-upstream","output":[]}}',
};

for (const protocol of PROTOCOL_NAMES) {
  test(`${protocol}: an event over several data lines gets the client's name of the model like any other`, () => {
    const told = (data: string) => {
      const { text } = convertStream(openExchange(protocol, { renamed: true }), [Buffer.from(`data: ${data}\n\n`)]);
      const [, json] = /^data: (.*)$/m.exec(text) ?? [];
      return JSON.parse(json as string);
    };
    const inOneLine = told(NAMED[protocol]);
    assert.deepEqual(told(NAMED[protocol].replaceAll(",", ",\ndata: ")), inOneLine);
    assert.equal((inOneLine.message ?? inOneLine.response ?? inOneLine).model, "m");
  });
}

test("a template keeps no reference to the buffers from which it was made", () => {
  const frame = Buffer.from('data: {"model":"upstream","text":"words"}\n\n');
  const sent = Buffer.from('data: {"model":"ours","text":"words"}\n\n');
  const template = DeltaTemplate.of(frame, sent, { text: "text" });
  const next = Buffer.from('data: {"model":"upstream","text":"more"}\n\n');
  frame.fill(0);
  sent.fill(0);
  const run = template?.run(next, 0, true);
  assert(template && run);
  assert.equal(template.written(next, run).toString(), 'data: {"model":"ours","text":"more"}\n\n');
});
