/** The parsers of untrusted input also get random input: seeded, bounded, and compared with JSON.parse. */
import assert from "node:assert/strict";
import test from "node:test";
import { decodeUtf8, isJsonFault, memberValue, readJson, scanJson, spliceNested } from "../../../src/wire/json.ts";
import { cutAt, framesOf } from "./frames.ts";

const ROUNDS = 40_000;
const LIMITS = { depthMax: 64, tokensMax: 10_000 };

/** Mulberry32: small, seeded, the same on every machine. */
function randomFrom(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) % below;
  };
}

const SEEDS = [
  '{"model":"big-1","messages":[{"role":"user","content":"h\\u00e9 \\"x\\" 😀"}],"n":-1.5e+3,"stream":true,"x":null}',
  '{ "a" : [ ] , "b" : { } , "c" : [ false , [ 0 , -0 , 0.10 ] ] }\r\n',
  '{"":"","\\ud83d\\ude00":1,"é":"\\\\"}',
  '{"a":1,"aa":2,"a ":3,"\\u0061b":4}',
  "{}",
].map((text) => Buffer.from(text));

/** Bytes with a meaning in the grammar, so that mutations are close to valid bodies. */
const TELLING = Buffer.from('{}[]",:\\0123456789.eE+-truefalsn ul\t\n\r\x00\x1f\x7f\x80\xc3\xa9\xed\xf0\xff', "latin1");

function mutated(random: (below: number) => number): Buffer {
  const bytes = [...(SEEDS[random(SEEDS.length)] as Buffer)];
  for (let n = random(4); n >= 0; n--) {
    const at = random(bytes.length + 1);
    const byte = TELLING[random(TELLING.length)] as number;
    const kind = random(4);
    if (kind === 0) bytes.splice(at, 1);
    else if (kind === 1) bytes.splice(at, 0, byte);
    else if (kind === 2) bytes[Math.min(at, bytes.length - 1)] = byte;
    else bytes.splice(at, 0, ...bytes.slice(random(bytes.length), random(bytes.length + 1)));
  }
  return Buffer.from(bytes);
}

function noise(random: (below: number) => number): Buffer {
  return Buffer.from(
    Array.from({ length: random(40) }, () => (random(2) ? (TELLING[random(TELLING.length)] as number) : random(256))),
  );
}

/** The result of JSON.parse for the bytes, if it is an object. */
function parsedObject(bytes: Uint8Array): Record<string, unknown> | undefined {
  const text = decodeUtf8(bytes);
  if (text === undefined) return undefined;
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : undefined;
  } catch {
    return undefined;
  }
}

function hasNoUtf8(bytes: Uint8Array): boolean {
  return decodeUtf8(bytes) === undefined;
}

test("the scan accepts what JSON.parse accepts as an object, and nothing else", () => {
  const random = randomFrom(26);
  const seen = { accepted: 0, refused: 0, duplicate: 0 };
  for (let round = 0; round < ROUNDS; round++) {
    const bytes = round % 4 === 0 ? noise(random) : mutated(random);
    const shown = () => `round ${round}: ${JSON.stringify(bytes.toString("latin1"))}`;
    const result = scanJson(bytes, LIMITS);
    const parsed = parsedObject(bytes);
    if (!isJsonFault(result)) {
      seen.accepted++;
      assert.ok(parsed !== undefined || hasNoUtf8(bytes), shown());
      if (parsed === undefined) continue;
      assert.equal(result.members.length, Object.keys(parsed).length, shown());
      for (const { name } of result.members) {
        const value = Buffer.from(memberValue(bytes, result, name) ?? "").toString();
        assert.deepEqual(JSON.parse(value), parsed[name], shown());
      }
    } else if (result.fault === "duplicate_field") {
      seen.duplicate++;
      assert.ok(parsed !== undefined || hasNoUtf8(bytes), shown());
      if (parsed) assert.ok(Object.hasOwn(parsed, result.name as string), shown());
    } else {
      seen.refused++;
      assert.equal(parsed, undefined, shown());
      assert.ok(result.at >= 0 && result.at <= bytes.length, shown());
    }
  }
  assert.ok(seen.accepted > 1_000 && seen.refused > 1_000 && seen.duplicate > 10, JSON.stringify(seen));
});

/** Strings longer than those that are scanned byte by byte, with escapes and quotes at every distance from their ends. */
function withLongStrings(random: (below: number) => number): Buffer {
  const pieces = [
    "a",
    "\\\\",
    '\\"',
    "\\n",
    "\\u0022",
    "é",
    ",",
    "}",
    "x".repeat(47),
    "y".repeat(48),
    "z".repeat(130),
    '"',
    "\n",
    "\\",
  ];
  const text = () => {
    let value = "";
    for (let n = random(8); n >= 0; n--) value += pieces[random(round % 3 === 0 ? pieces.length : pieces.length - 3)];
    return value;
  };
  const round = random(1_000);
  return Buffer.from(
    `{"${text()}":"${text()}","b":["${text()}",{"${text()}":"${text()}"}],"b${random(9)}":"${text()}"}`,
  );
}

test("a body that is parsed before it is scanned gives the same result as one scanned first", () => {
  const random = randomFrom(29);
  const seen = { read: 0, refused: 0, beyond: 0 };
  for (let round = 0; round < ROUNDS; round++) {
    const bytes = round % 3 === 0 ? mutated(random) : withLongStrings(random);
    const limits = {
      ...LIMITS,
      ...(random(4) ? {} : { depthMax: 2 + random(2), tokensMax: 4 + random(6), membersMax: 1 + random(3) }),
      ...(random(3) ? {} : { nameBytesMax: random(140) }),
    };
    const shown = () => `round ${round}: ${JSON.stringify(bytes.toString("latin1"))} ${JSON.stringify(limits)}`;
    const scan = scanJson(bytes, limits);
    const read = readJson(bytes, limits);
    if (isJsonFault(scan)) {
      assert.deepEqual(read, scan, shown());
      seen.refused++;
      if (parsedObject(bytes)) seen.beyond++;
    } else if (hasNoUtf8(bytes)) {
      assert.ok("fault" in read && read.fault === "not_json", shown());
    } else {
      assert.ok(!("fault" in read), shown());
      assert.deepEqual([read.scan, read.json], [scan, parsedObject(bytes)], shown());
      seen.read++;
    }
  }
  assert.ok(seen.read > 5_000 && seen.refused > 5_000 && seen.beyond > 1_000, JSON.stringify(seen));
});

test("a nested splice of any input gives bytes, or the same bytes", () => {
  const random = randomFrom(27);
  for (let round = 0; round < ROUNDS / 4; round++) {
    const bytes = random(2) ? noise(random) : mutated(random);
    const path = [["model"], ["messages", "x"], ["b", "a"], []][random(4)] as string[];
    assert.ok(spliceNested(bytes, path, random(2) ? "1" : undefined) instanceof Uint8Array);
  }
});

test("the stream reader returns every byte, whatever the bytes and the cuts", () => {
  const random = randomFrom(28);
  const alphabet = Buffer.from("\r\n\r\n:data: event\xef\xbb\xbf", "latin1");
  for (let round = 0; round < ROUNDS / 4; round++) {
    const bytes = Buffer.from(
      Array.from({ length: random(60) }, () =>
        random(8) ? (alphabet[random(alphabet.length)] as number) : random(256),
      ),
    );
    const whole = framesOf([bytes]);
    assert.equal(whole.frames.map((frame) => frame.raw).join(""), bytes.toString("latin1"));
    const cuts = Array.from({ length: random(6) }, () => random(bytes.length + 1));
    assert.deepEqual(framesOf(cutAt(bytes, cuts)), whole);
    framesOf(cutAt(bytes, cuts), random(20));
  }
});
