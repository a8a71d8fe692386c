import assert from "node:assert/strict";
import test from "node:test";
import {
  hopByHopNames,
  isToken,
  mediaTypeOf,
  parseRetryAfterMs,
  parseRetryAfterS,
  safeHeaderValue,
} from "../../../src/wire/header.ts";

test("rows 24 and 62: headers named in Connection are not forwarded, in addition to the fixed ones", () => {
  const fixed = hopByHopNames(undefined);
  for (const name of [
    "connection",
    "keep-alive",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "proxy-authorization",
  ]) {
    assert.ok(fixed.has(name), name);
  }
  assert.ok(!fixed.has("content-type"));
  const named = hopByHopNames("close, X-Billing ,x-api-key,, bad name,\u00e9");
  assert.deepEqual([...named].slice(fixed.size), ["close", "x-billing", "x-api-key"]);
  assert.ok(!hopByHopNames(undefined).has("x-billing"), "names of one request do not affect the next");
});

test("headers for the message length, the host and the forwarded client are kept even if Connection names them", () => {
  const fixed = hopByHopNames(undefined);
  const kept = "content-length, Host, X-Forwarded-For, x-forwarded-proto, x-forwarded-";
  const named = hopByHopNames(
    `${kept}, x-host, host-x, x-content-length, content-lengths, x-x-forwarded-for, forwarded`,
  );
  assert.deepEqual([...named].slice(fixed.size), [
    ...["x-host", "host-x", "x-content-length", "content-lengths", "x-x-forwarded-for", "forwarded"],
  ]);
});

test("tokens contain only the characters that HTTP allows", () => {
  for (const text of ["a", "X-Api-Key", "!#$%&'*+-.^_`|~09"]) assert.ok(isToken(text), text);
  for (const text of ["", "a b", "a:", "a\n", "é", "a,b", '"a"', "a/b"]) assert.ok(!isToken(text), text);
});

test("row 63: a safe value has no control character and no obs-text", () => {
  for (const text of ["", "a b", "\ta~"]) assert.ok(safeHeaderValue(text), text);
  for (const text of ["a\r\nb", "a\n", "\0", "\x7f", "\x80", "é", "\u2028"])
    assert.ok(!safeHeaderValue(text), JSON.stringify(text));
});

test("retry-after is read in seconds or as a date, if it is plausible", () => {
  const now = Date.UTC(2026, 9, 21, 7, 28, 0);
  const table: [string, number | undefined][] = [
    ["0", 0],
    ["7", 7],
    [" 7 ", 7],
    ["3600", 3600],
    ["3601", undefined],
    ["-1", undefined],
    ["1e3", undefined],
    ["0x10", undefined],
    ["", undefined],
    ["soon", undefined],
    ["99999999999999999999", undefined],
    ["Wed, 21 Oct 2026 07:28:00 GMT", 0],
    ["Wed, 21 Oct 2026 07:28:30 GMT", 30],
    ["Wed, 21 Oct 2026 08:28:00 GMT", 3600],
    ["Wed, 21 Oct 2026 08:28:01 GMT", undefined],
    ["Wed, 21 Oct 2026 07:27:59 GMT", undefined],
    ["Wed, 21 Oct 2026 07:28:30", undefined],
    ["2026-10-21T07:28:30Z", undefined],
    ["Wed, 39 Oct 2026 07:28:30 GMT", undefined],
  ];
  for (const [text, expected] of table) assert.equal(parseRetryAfterS(text, now), expected, text);
  assert.equal(parseRetryAfterS("Wed, 21 Oct 2026 07:28:30 GMT", now + 1), 30, "rounded up");
});

test("retry-after-ms is read in milliseconds, if it is plausible", () => {
  const table: [string, number | undefined][] = [
    ["0", 0],
    ["250", 250],
    [" 250 ", 250],
    ["250.2", 251],
    ["0.001", 1],
    ["3600000", 3_600_000],
    ["3600000.1", undefined],
    ["3600001", undefined],
    ["-1", undefined],
    ["1e3", undefined],
    ["0x10", undefined],
    [".5", undefined],
    ["5.", undefined],
    ["", undefined],
    ["soon", undefined],
    ["99999999999999999999", undefined],
    ["Infinity", undefined],
    ["Wed, 21 Oct 2026 07:28:00 GMT", undefined],
  ];
  for (const [text, expected] of table) assert.equal(parseRetryAfterMs(text), expected, text);
});

test("row 54: media types are read with their parameters", () => {
  const read = (text: string | undefined) => {
    const found = mediaTypeOf(text);
    return found && [found.type, Object.fromEntries(found.parameters)];
  };
  assert.deepEqual(read("application/json"), ["application/json", {}]);
  assert.deepEqual(read(' Application/JSON ; Charset=UTF-8;q="a \\"b;" '), [
    "application/json",
    { charset: "UTF-8", q: 'a "b;' },
  ]);
  assert.deepEqual(read("text/event-stream;"), ["text/event-stream", {}]);
  assert.deepEqual(read("a/b;;c=d; "), ["a/b", { c: "d" }]);
  for (const bad of [
    undefined,
    "",
    "json",
    "a/",
    "/b",
    "a/b/c",
    "a/b, c/d",
    "a/b; c",
    "a/b; c=",
    "a/b; c =d",
    'a/b; c="d',
  ]) {
    assert.equal(read(bad), undefined, String(bad));
  }
  for (const bad of ["a/b; charset=utf-8; charset=utf-16", "a/b\n", "a/b; c=é", 'a/b; c="é"', "a b/c"]) {
    assert.equal(read(bad), undefined, bad);
  }
});

test("row 59: a megabyte of nearly empty fields is read in linear time", () => {
  for (const text of [
    "a".repeat(1e6),
    `a/b;${" ".repeat(1e6)}!`,
    `a/b;c="${"\\".repeat(1e6 + 1)}`,
    `a/b${";".repeat(1e6)}!`,
  ]) {
    assert.equal(mediaTypeOf(text), undefined);
    assert.equal(parseRetryAfterS(text, 0), undefined);
    hopByHopNames(text);
  }
});
