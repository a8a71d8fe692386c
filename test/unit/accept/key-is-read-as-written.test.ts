import assert from "node:assert/strict";
import test from "node:test";
import { RequestHeaders } from "../../../src/accept/headers.ts";
import { keyOf } from "../../../src/accept/key.ts";
import { isRefusal } from "../../../src/values/errors.ts";
import { exchange } from "../../rig/raw-socket.ts";
import { CHAT_BODY, causeOf, KEY, OTHER_KEY, request, startEcho } from "./echo.ts";

const BASE = ["Content-Type: application/json", `Content-Length: ${CHAT_BODY.length}`];
const wrongEnd = KEY.slice(0, -1) + (KEY.endsWith("0") ? "1" : "0");

/** Case, headers, and the cause of the 401; undefined: accepted. */
const CASES: readonly (readonly [string, readonly string[], string | undefined])[] = [
  ["row 26: no key", [], "missing_key"],
  ["row 26: Basic", ["Authorization: Basic c2stYTpi"], "missing_key"],
  ["row 26: Bearer alone", ["Authorization: Bearer"], "missing_key"],
  ["row 26: an empty x-api-key", ["x-api-key: "], "missing_key"],
  ["row 26: an empty x-api-key beside a key", [`Authorization: Bearer ${KEY}`, "x-api-key: "], undefined],
  ["row 26: two spaces", [`Authorization: Bearer  ${KEY}`], "malformed_key"],
  ["row 26: a tab for the space", [`Authorization: Bearer\t${KEY}`], "missing_key"],
  ["row 26: lower-case scheme", [`authorization: bearer ${KEY}`], undefined],
  ["row 26: two keys in one header", [`Authorization: Bearer ${KEY}, Bearer ${KEY}`], "malformed_key"],
  ["row 26: no scheme", [`Authorization: ${KEY}`], "missing_key"],
  ["row 26: zero-width character", [`x-api-key: ${KEY}\xe2\x80\x8b`], "malformed_key"],
  [
    "row 26: fullwidth characters",
    [`x-api-key: ${Buffer.from(KEY.replace("s", "ｓ")).toString("latin1")}`],
    "malformed_key",
  ],
  ["row 26: a blank inside", [`x-api-key: ${KEY.slice(0, 20)} ${KEY.slice(20)}`], "malformed_key"],
  ["row 26: quotes", [`x-api-key: "${KEY}"`], "malformed_key"],
  ["row 26: upper-case prefix", [`x-api-key: SK-${KEY.slice(3)}`], "malformed_key"],
  ["row 27: two different keys", [`Authorization: Bearer ${KEY}`, `x-api-key: ${OTHER_KEY}`], "conflicting_keys"],
  ["row 27: the same key in both headers", [`Authorization: Bearer ${KEY}`, `x-api-key: ${KEY}`], undefined],
  ["row 27: one of ours beside another's", [`Authorization: Bearer sk-ant-other`, `x-api-key: ${KEY}`], undefined],
  ["row 27: the other way round", [`Authorization: Bearer ${KEY}`, "x-api-key: placeholder"], undefined],
  ["row 27: two of neither form", ["Authorization: Bearer a", "x-api-key: b"], "malformed_key"],
  ["row 27: authorization twice", [`Authorization: Bearer ${KEY}`, `Authorization: Bearer ${KEY}`], "conflicting_keys"],
  ["row 27: x-api-key twice", [`x-api-key: ${KEY}`, `X-Api-Key: ${KEY}`], "conflicting_keys"],
  ["row 28: a cookie", [`Cookie: x-api-key=${KEY}`], "missing_key"],
  ["row 23: an underscore in the name", [`x_api_key: ${KEY}`], "missing_key"],
  ["row 23: announced as a trailer", ["Trailer: Authorization"], "missing_key"],
  ["row 32: a hash tag in the key", [`x-api-key: sk-}{a:victim}${KEY.slice(14)}`], "malformed_key"],
  ["row 32: a pattern", ["x-api-key: sk-*"], "malformed_key"],
  ["row 32: an escaped line break", [`x-api-key: ${KEY}%0d%0a`], "malformed_key"],
];

for (const [name, headers, cause] of CASES) {
  test(`${name} is ${cause === undefined ? "accepted" : `401 ${cause}`}`, async (t) => {
    const echo = await startEcho(t);
    const [response] = await exchange(echo.target, request({ key: undefined, headers: [...BASE, ...headers] }));
    assert.ok(response);
    assert.equal(response.status, cause === undefined ? 200 : 401, response.body);
    if (cause !== undefined) assert.equal(causeOf(response.body), cause);
    assert.equal(
      /is not Bearer, a space and a key/.test(response.body),
      /: (?:no scheme|Basic|a tab)/.test(name),
      response.body,
    );
    assert.ok(!response.body.includes(KEY.slice(3)));
  });
}

test("row 28: a key in the query is ignored", async (t) => {
  const echo = await startEcho(t);
  const line = `POST /v1/chat/completions?api_key=${KEY} HTTP/1.1`;
  const [response] = await exchange(echo.target, request({ line, key: undefined }));
  assert.equal(causeOf(response?.body ?? ""), "missing_key");
});

test("row 32: a key of 1 MB never reaches the pipeline", async (t) => {
  const echo = await startEcho(t);
  const [response] = await exchange(echo.target, request({ key: `sk-${"a".repeat(1_000_000)}` }));
  assert.ok([400, 401, 431].includes(response?.status ?? 0));
  assert.equal(echo.requests.length, 0);
});

test("row 30: a key with a wrong checksum is read as noise", () => {
  assert.equal(keyOf(new RequestHeaders(["x-api-key", wrongEnd])), "noise");
});

test("row 26: whitespace around the value is not part of it (RFC 9110 section 5.5)", async (t) => {
  const echo = await startEcho(t);
  const [response] = await exchange(
    echo.target,
    request({ key: undefined, headers: [...BASE, `x-api-key: \t${KEY} \t`] }),
  );
  assert.equal(response?.status, 200);
});

test("a request leaves accept without the text of its key", async (t) => {
  const echo = await startEcho(t);
  await exchange(echo.target, request({ headers: [...BASE, `x-api-key: ${KEY}`] }));
  const [seen] = echo.requests;
  assert.ok(seen && !isRefusal(seen.key));
  const text = JSON.stringify({ ...seen, headers: [...seen.headers.entries()] });
  assert.ok(!text.includes(KEY.slice(13, 45)));
});

test("a request leaves accept without any header that carries credentials, whether or not the key was read from it", async (t) => {
  const echo = await startEcho(t);
  const names = ["Authorization", "X-Api-Key", "Proxy-Authorization", "Cookie"];
  const proofs = names.map((name) => `${name}: Bearer of-${name}`);
  await exchange(echo.target, request({ key: undefined, headers: [...BASE, ...proofs, "X-Other: stays"] }));
  const left = [...(echo.requests[0]?.headers.entries() ?? [])];
  assert.deepEqual(left, [
    ["host", "gateway.test"],
    ["content-type", "application/json"],
    ["content-length", String(CHAT_BODY.length)],
    ["x-other", "stays"],
  ]);
});
