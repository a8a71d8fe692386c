/** docs/failure-model.md rows 47, 48, 51 and 52: what is accepted as a body, byte by byte. */
import assert from "node:assert/strict";
import test from "node:test";
import { decodeUtf8, findMember, isJsonFault, JSON_LIMITS, memberValue, scanJson } from "../../../src/wire/json.ts";

function faultOf(body: string | Uint8Array): string {
  const result = scanJson(typeof body === "string" ? Buffer.from(body) : body);
  return isJsonFault(result) ? `${result.fault}@${result.at}` : "none";
}

test("only one top-level object is a body", () => {
  for (const text of [
    "",
    " ",
    "[]",
    "1",
    '"x"',
    "null",
    "x",
    "{}{}",
    "{} x",
    '{"a":1},',
    "{",
    '{"a"',
    '{"a":',
    '{"a":1',
  ]) {
    assert.match(faultOf(text), /^not_json/, text);
  }
  for (const text of ["{}", " \t\r\n{ } \n", '{"a":{}}', '{"":0}']) assert.equal(faultOf(text), "none", text);
});

test("the grammar is JSON's own", () => {
  const bad = [
    "01",
    "-",
    "+1",
    "1.",
    ".5",
    "1e",
    "1e+",
    "0x10",
    "NaN",
    "Infinity",
    "tru",
    "truex",
    "True",
    "'x'",
    "[1,]",
  ];
  bad.push(
    "[,1]",
    "[1 2]",
    '{"b":1,}',
    "{,}",
    '{"b" 1}',
    "{b:1}",
    '{"b":}',
    '"\\x"',
    '"\\u12g4"',
    '"\\u12"',
    '"\t"',
    '"\n"',
  );
  bad.push('"\0"', "[1}", '{"b":1]', "//c\n1", "1/**/");
  for (const value of bad) assert.match(faultOf(`{"a":${value}}`), /^not_json/, value);
  const good = ["0", "-0", "1.50", "1e400", "-1.2E-3", "9007199254740993", '"\\ud800"', '"\\u0000"', '"\x7f\u202e"'];
  good.push('"\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9"', "[ ]", "[1 , [ ] ]");
  for (const value of good) assert.equal(faultOf(`{"a":${value}}`), "none", value);
});

test("row 51: byte order marks, UTF-16 and invalid UTF-8 are refused", () => {
  const object = Buffer.from('{"a":1}');
  const bom = Buffer.concat([Buffer.from([0xef, 0xbb, 0xbf]), object]);
  assert.match(faultOf(bom), /^not_json/);
  assert.match(faultOf(Buffer.from('{"a":1}', "utf16le")), /^not_json/);
  assert.match(faultOf(Buffer.concat([Buffer.from([0xff, 0xfe]), Buffer.from('{"a":1}', "utf16le")])), /^not_json/);
  assert.equal(decodeUtf8(bom), undefined);
  for (const bytes of [
    [0xff, 0xfe],
    [0xc0, 0xaf],
    [0xed, 0xa0, 0x80],
    [0xf4, 0x90, 0x80, 0x80],
    [0xe6, 0x97],
    [0x80],
  ]) {
    assert.equal(decodeUtf8(Buffer.from(bytes)), undefined, String(bytes));
    const named = Buffer.concat([Buffer.from('{"'), Buffer.from(bytes), Buffer.from('":1}')]);
    assert.match(faultOf(named), /^not_json/);
  }
});

test("valid UTF-8 is decoded unchanged", () => {
  for (const text of ["", "plain", "日本語 😀 é", "\u0000\u2028\ufffd", "a\ufeffb"]) {
    assert.equal(decodeUtf8(Buffer.from(text)), text);
  }
  assert.equal(faultOf('{"\ufffd":1}'), "none");
});

test("row 47: a repeated top-level name is refused, however it is spelled", () => {
  const plain = scanJson(Buffer.from('{"model":"cheap","model":"dear"}'));
  assert.ok(isJsonFault(plain));
  assert.deepEqual([plain.fault, plain.at, plain.name], ["duplicate_field", 17, "model"]);
  const escaped = scanJson(Buffer.from('{"model":1,"x":2,"mod\\u0065l":3}'));
  assert.ok(isJsonFault(escaped));
  assert.deepEqual([escaped.fault, escaped.name], ["duplicate_field", "model"]);
  assert.equal(faultOf('{"\\ud83d\\ude00":1,"😀":2}'), "duplicate_field@18");
  assert.equal(faultOf('{"model":1,"Model":2,"a":{"model":3,"b":1,"b":2}}'), "none");
  assert.match(
    faultOf('{"a":1,"a":2'),
    /^not_json/,
    "a malformed body is reported as malformed before it is ambiguous",
  );
});

test("row 47: the last allowed name is compared with those before it", () => {
  const names = Array.from({ length: JSON_LIMITS.membersMax - 1 }, (_, i) => `"k${i}":1`);
  assert.equal(faultOf(`{${names.join()}}`), "none");
  assert.match(faultOf(`{${names.join()},"k0":2}`), /^duplicate_field/);
});

test("row 48: names of the prototype chain are names like any other", () => {
  assert.equal(faultOf('{"__proto__":{"stream":true},"constructor":{"prototype":{"stream":true}}}'), "none");
  assert.equal(faultOf('{"__proto__":1,"__proto__":2}'), "duplicate_field@15");
  assert.equal(({} as { stream?: boolean }).stream, undefined);
});

test("members are found with the exact bytes of their values", () => {
  const body = Buffer.from(' { "a" : [1, {"a":2}] , "b":-0.50 ,"c\\u0061":"é" }');
  const scan = scanJson(body);
  assert.ok(!isJsonFault(scan));
  const values = scan.members.map((m) => [m.name, Buffer.from(memberValue(body, scan, m.name) ?? "").toString()]);
  assert.deepEqual(values, [
    ["a", '[1, {"a":2}]'],
    ["b", "-0.50"],
    ["ca", '"é"'],
  ]);
  assert.equal(body[scan.end], 0x7d);
  assert.equal(findMember(scan, "nothing"), undefined);
  assert.equal(memberValue(body, scan, "nothing"), undefined);
});
