/**
 * docs/failure-model.md rows C11, 60, 61 and 62, docs/translation-rules.md rule 47: of an upstream's error only the
 * message for humans is passed on.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { answerOf } from "../../../src/values/errors.ts";
import { Secret } from "../../../src/values/secret.ts";
import { ask, assertAnswered, jsonReply, refusalIn, replying, rig, route, UPSTREAM_KEY, upstream } from "./rig.ts";

const refuse = (status: string, message: unknown) => jsonReply(ascii(JSON.stringify({ error: { message } })), status);

/** The same JSON without bytes above ASCII. */
function ascii(json: string): string {
  return json.replace(/[^\x20-\x7e]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

async function refusalFor(t: test.TestContext, reply: string) {
  const base = await replying(t, reply);
  const settings = upstream("east", base, { headers: new Map([["x-team", new Secret("configured-canary-9")]]) });
  const made = rig(t, [settings]);
  const result = await made.dispatcher.run(ask([route("east")], { stream: false }));
  return { refusal: refusalIn(result), result, base, warnings: made.warnings };
}

test("60: an echoed credential, id or address is removed, and the rest of the message is kept", async (t) => {
  const message =
    `prompt is too long: 210000 tokens > 200000 maximum (Authorization: Bearer ${UPSTREAM_KEY}, ` +
    "org-AbC123xyz, req_011CabcDEF, acct_98765, configured-CANARY-9, http://10.1.2.3:9000/internal, sk-proj-abcdef123)";
  const { refusal } = await refusalFor(t, refuse("400 Bad", message));
  assert.equal(refusal.cause, "upstream_rejected");
  assert.equal(refusal.status, 400);
  const said = refusal.upstreamMessage ?? "";
  assert.match(said, /^prompt is too long: 210000 tokens > 200000 maximum \(/);
  assert.doesNotMatch(said, /canary|AbC123xyz|011Cabc|98765|10\.1\.2\.3|abcdef123|Bearer/i);
});

test("60: names given by clouds, other credentials and internal addresses are removed, and similar words are kept", async () => {
  const { cleanedWords } = await import("../../../src/dispatch/upstream/words.ts");
  const east = upstream("east", "https://gw.example:8443/v1");
  const taken = [
    "`projects/acme-prod-1234/locations/us-central1/publishers/google/models/g`",
    "arn:aws:bedrock:us-east-1:123456789012:application-inference-profile/abc123",
    "arn:aws-cn:iam::123456789012:role/tollgate",
    "vllm-7.internal.acme.example:8000",
    "fd00:12::7",
    "2001:db8:0:0:1:0:0:1",
    "AIzaSyA1234567890abcdefghijklmnop",
    "Authorization: Basic dXNlcjpwYXNz",
    "x-api-key: abcdef0123456789abcdef0123456789",
  ];
  for (const name of taken)
    assert.match(cleanedWords(`bad ${name} here`, east) ?? "", /^bad `?\[removed\]`? here$/, name);
  const kept = [
    "unexpected key: max_tokens_to_sample",
    "std::vector at 12:34:56, a::b, 1:2",
    "tools.0.custom.input_schema: field required",
    "see docs.example/errors, section 4.2:1",
    "an api key is not needed for projects",
  ];
  for (const words of kept) assert.equal(cleanedWords(words, east), words);
});

test("60: a UUID that a message calls an organization or account is removed, and any other UUID is kept", async () => {
  const { cleanedWords } = await import("../../../src/dispatch/upstream/words.ts");
  const east = upstream("east", "https://gw.example:8443/v1");
  const id = "f47ac10b-58cc-4372-a567-0e02b2c3d479";
  for (const before of ["your organization (", "your organization's (", "organization ID: ", "Account '", "workspace "])
    assert.equal(cleanedWords(`${before}${id} is not enrolled`, east), `${before}[removed] is not enrolled`);
  const kept = `tool call ${id} of your organization has no result`;
  assert.equal(cleanedWords(kept, east), kept);
});

test("60: the same applies to an error in the body of a 200 or in a stream", async () => {
  const { failureOfFault, refusalOf } = await import("../../../src/dispatch/failure.ts");
  const words = `prompt is too long: 210000 tokens > 200000 maximum (${UPSTREAM_KEY} at http://10.1.2.3:9000/x, org-AbC123xyz)`;
  const settings = upstream("east", "https://gw.example:8443/v1");
  const fault = { cause: "upstream_rejected", code: "context_length_exceeded", reason: "reported", words } as const;
  const said =
    refusalOf(failureOfFault(fault, { settings, model: "m", isOfClientsProtocol: true })).upstreamMessage ?? "";
  assert.match(said, /^prompt is too long: 210000 tokens > 200000 maximum \(/);
  assert.doesNotMatch(said, /canary|AbC123xyz|10\.1\.2\.3/i);
  assert.ok(!said.includes(UPSTREAM_KEY));
});

test("60: the upstream's own host and base URL are removed", async (t) => {
  const base = await replying(t, "unused");
  const { host } = new URL(base);
  const { readUpstreamWords } = await import("../../../src/dispatch/upstream/words.ts");
  const body = Buffer.from(
    JSON.stringify({ error: { message: `no route ${base}/x via ${host.toUpperCase()} or gw.example` } }),
  );
  const named = upstream("east", "https://gw.example:8443/v1");
  assert.equal(readUpstreamWords(body, named).message, "no route [removed] via [removed] or [removed]");
});

test("the message of an upstream's 400, 413 and 422 is found in every form of error", async (t) => {
  const cases: readonly (readonly [string, unknown, number])[] = [
    ["400 Bad", { error: { message: "too long", type: "invalid_request_error", param: null, code: null } }, 400],
    [
      "400 Bad",
      { type: "error", error: { type: "invalid_request_error", message: "too long" }, request_id: "req_x" },
      400,
    ],
    ["413 Large", { message: "too long" }, 413],
    ["422 Odd", { detail: [{ loc: ["body"], msg: "too long" }] }, 400],
    ["400 Bad", { detail: "too long" }, 400],
    ["400 Bad", { error: "too long" }, 400],
  ];
  for (const [status, body, answered] of cases) {
    const { refusal, result } = await refusalFor(t, jsonReply(JSON.stringify(body), status));
    assert.equal(refusal.upstreamMessage, "too long");
    assert.equal(answerOf(refusal).status, answered);
    assert.equal(result.attempts.length, 1);
  }
});

test("an item that the upstream does not have is the client's fault, even with a 404", async (t) => {
  const message =
    "Item with id 'rs_0a1b' not found. Items are not persisted when `store` is set to false. Try again with `store` set to true.";
  const body = JSON.stringify({ error: { message, type: "invalid_request_error", param: "input", code: null } });
  for (const status of ["400 Bad", "404 Not Found"]) {
    const { refusal } = await refusalFor(t, jsonReply(body, status));
    assert.equal(refusal.cause, "upstream_rejected", status);
    assert.equal(refusal.upstreamMessage, message);
    assert.equal(answerOf(refusal).status, 400);
  }
});

test("a message is cut at 2,000 characters and its control characters are escaped", async (t) => {
  const long = await refusalFor(t, refuse("400 Bad", "x".repeat(5_000)));
  assert.equal(long.refusal.upstreamMessage?.length, 2_000);
  const odd = await refusalFor(t, refuse("400 Bad", "a\u001b[31mb\r\nc\u202ed"));
  assert.equal(odd.refusal.upstreamMessage, "a\\u001b[31mb\\u000d\\u000ac\\u202ed");
});

test("60: a secret at the position where a message is cut is removed completely", async (t) => {
  const { refusal } = await refusalFor(t, refuse("400 Bad", `${"x ".repeat(990)}${UPSTREAM_KEY} ${"y ".repeat(990)}`));
  const said = refusal.upstreamMessage ?? "";
  assert.doesNotMatch(said, /up-/);
  assert.match(said, /x \[removed\] y/);
});

test("60: a secret at the end of the searched text is not shown in part, even if what precedes it is removed", async (t) => {
  const keys = `${UPSTREAM_KEY} `.repeat(Math.floor(3_990 / (UPSTREAM_KEY.length + 1)));
  const before = keys + "x".repeat(4_000 - 10 - keys.length);
  const { refusal } = await refusalFor(t, refuse("400 Bad", `${before}${UPSTREAM_KEY} ${"y ".repeat(990)}`));
  assert.doesNotMatch(refusal.upstreamMessage ?? "", new RegExp(UPSTREAM_KEY.slice(0, 4)));
});

test("60: a long secret at the end of the searched text is not shown in part either", async () => {
  const { cleanedWords } = await import("../../../src/dispatch/upstream/words.ts");
  const long = `long-${"k".repeat(900)}`;
  const settings = upstream("east", "https://gw.example:8443/v1", { headers: new Map([["x-long", new Secret(long)]]) });
  const addresses = "https://gw.example:8443/v1 ".repeat(118);
  const before = addresses + "x ".repeat((3_200 - addresses.length) / 2);
  assert.doesNotMatch(cleanedWords(`${before}${long} ${"y ".repeat(990)}`, settings) ?? "", /kk/);
});

test("60: of two secrets that begin alike, the longer one is removed completely", async () => {
  const { cleanedWords } = await import("../../../src/dispatch/upstream/words.ts");
  const headers = new Map([
    ["x-team", new Secret("blue-team")],
    ["x-token", new Secret("blue-team/7f3a9c")],
  ]);
  const settings = upstream("east", "https://gw.example:8443/v1", { headers });
  assert.equal(cleanedWords("no right for blue-team/7f3a9c", settings), "no right for [removed]");
});

test("a 400 that is not JSON, or too long to read, gets the gateway's own message", async (t) => {
  for (const body of ["<html>canary</html>", `{"error":{"message":"${"canary ".repeat(12_000)}"}}`]) {
    const { refusal } = await refusalFor(t, jsonReply(body, "400 Bad"));
    assert.equal(refusal.cause, "upstream_rejected");
    assert.equal(refusal.upstreamMessage, undefined);
  }
});

test("C11: 401, 402, 403, 429 and 5xx get only the gateway's own message", async (t) => {
  for (const [status, cause] of [
    ["401 No", "upstream_forbidden"],
    ["402 Pay", "upstream_forbidden"],
    ["403 No", "upstream_forbidden"],
    ["429 Slow", "upstream_rate_limit"],
    ["500 Oops", "upstream_unavailable"],
  ] as const) {
    const { refusal, result, warnings } = await refusalFor(t, refuse(status, `canary ${UPSTREAM_KEY}`));
    assert.equal(refusal.cause, cause);
    assert.doesNotMatch(JSON.stringify([refusal, answerOf(refusal), result.attempts, warnings]), /canary/);
    assert.equal(warnings.length, cause === "upstream_forbidden" ? 1 : 0);
  }
});

test("C11: a plausible retry-after is kept, any other is replaced", async (t) => {
  for (const [sent, kept] of [
    ["7", 7],
    ["0", 1],
    ["3600", 3600],
    ["3601", 5],
    ["-1", 5],
    ["soon", 5],
    ["1e3", 5],
  ] as const) {
    const { refusal } = await refusalFor(t, jsonReply("{}", "429 Slow", `retry-after: ${sent}\r\n`));
    assert.equal(answerOf(refusal).retryAfterS, kept, sent);
  }
});

test("C11: the retry-after of an overload is obeyed up to a minute", async (t) => {
  for (const [sent, kept] of [
    [59, 59],
    [61, 60],
    [3600, 60],
  ] as const) {
    const { refusal } = await refusalFor(t, jsonReply("{}", "503 Busy", `retry-after: ${sent}\r\n`));
    assert.equal(answerOf(refusal).retryAfterS, kept, String(sent));
  }
});

test("C11: a valid retry-after-ms takes precedence over retry-after, and an invalid one is ignored", async (t) => {
  for (const [sent, kept] of [
    ["retry-after-ms: 1500", 2],
    ["retry-after-ms: 12", 1],
    ["Retry-After-Ms: 30000", 30],
    ["x-ms-retry-after-ms: 4000", 4],
    ["retry-after: 9\r\nretry-after-ms: 2500", 3],
    ["retry-after-ms: 2500\r\nretry-after: 9", 3],
    ["retry-after-ms: 2500\r\nx-ms-retry-after-ms: 9000", 3],
    ["retry-after: 9\r\nretry-after-ms: 3600001", 9],
    ["retry-after: 9\r\nretry-after-ms: -5", 9],
    ["retry-after: 9\r\nretry-after-ms: soon", 9],
    ["retry-after-ms: 1e3", 5],
  ] as const) {
    const { refusal } = await refusalFor(t, jsonReply("{}", "429 Slow", `${sent}\r\n`));
    assert.equal(answerOf(refusal).retryAfterS, kept, sent);
  }
});

test("61, 62: of a reply's headers only the content-type is passed on", async (t) => {
  const headers =
    "set-cookie: a=b\r\nserver: x\r\nx-accel-redirect: /protected/x\r\nx-sendfile: /etc/passwd\r\nlocation: /x\r\n" +
    "alt-svc: h3\r\naccess-control-allow-origin: *\r\nx-ratelimit-limit: 1\r\nopenai-organization: org-1\r\n" +
    "connection: x-billing\r\nx-billing: 1\r\ntrailer: x\r\nrequest-id: req_1\r\n";
  const { dispatcher } = rig(t, [upstream("east", await replying(t, jsonReply("{}", "200 OK", headers)))]);
  const result = await dispatcher.run(ask([route("east")], { stream: false }));
  assertAnswered(result);
  assert.deepEqual(result.headers, { "content-type": "application/json" });
});

test("a model that an upstream does not know is retried at the next route, even of the same upstream, with a warning", async (t) => {
  for (const reply of [
    jsonReply("{}", "404 Not Found"),
    jsonReply('{"error":{"message":"x","code":"model_not_found"}}', "400 Bad"),
    refuse("400 Bad", "The model `big-9` does not exist or you do not have access to it."),
    refuse("400 Bad", "model 'big-9' not found, try pulling it first"),
    refuse("400 Bad", "The requested model with id big-9 could not be found"),
  ]) {
    const base = await replying(t, reply);
    const { dispatcher, warnings } = rig(t, [upstream("east", base)]);
    const routes = [route("east", { upstreamModel: "a" }), route("east", { upstreamModel: "b", priority: 1 })];
    const result = await dispatcher.run(ask(routes, { stream: false }));
    assert.equal(refusalIn(result).cause, "upstream_unavailable");
    assert.equal(refusalIn(result).upstreamMessage, undefined);
    assert.deepEqual(
      result.attempts.map(({ model }) => model),
      ["a", "b"],
    );
    assert.deepEqual(
      warnings.map(({ kind, model }) => [kind, model]),
      [
        ["model_not_found", "a"],
        ["model_not_found", "b"],
      ],
    );
  }
});

test("a quoted prompt cannot be mistaken for an unknown model", async (t) => {
  for (const words of [
    "Invalid value: 'the model x does not exist'.",
    "Model `big-9` cannot call 'a tool that was not found'.",
  ]) {
    const { refusal } = await refusalFor(t, refuse("400 Bad", words));
    assert.equal(refusal.cause, "upstream_rejected", words);
  }
});
