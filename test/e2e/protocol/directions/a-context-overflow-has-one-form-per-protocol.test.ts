/**
 * docs/translation-rules.md rule 47: a context overflow reads the same to a client whatever its server calls it. An
 * exhausted quota of the operator's account at a vendor is not reported as the client's fault.
 */
import assert from "node:assert/strict";
import test, { after, before } from "node:test";
import type { Protocol } from "../../../../src/values/protocol.ts";
import type { GatewayHere } from "../../../rig/gateway.ts";
import { framesOf } from "../whole/asking.ts";
import { askFor, DIRECTIONS, type Json, post, recordOf, startGateway } from "./rig.ts";

let here: GatewayHere;

before(async () => {
  here = await startGateway({ more: "", strict: false });
});

after(() => here.close());

const WORDS = "This model's maximum context length is 8192 tokens. However, your messages resulted in 10000 tokens.";
const GEMINI = "The input token count (10000) exceeds the maximum number of tokens allowed (8192).";

/** Bodies of a 400. */
const BODIES: Readonly<Record<string, unknown>> = {
  "with a code": { error: { message: WORDS, type: "invalid_request_error", code: "context_length_exceeded" } },
  "by its sentence": { object: "error", message: WORDS, type: "BadRequestError", code: 400 },
  "in a list": [{ error: { code: 400, message: GEMINI, status: "INVALID_ARGUMENT" } }],
  "behind a router": {
    error: {
      message: "Provider returned error",
      code: 400,
      metadata: { raw: JSON.stringify({ error: { message: WORDS } }) },
    },
  },
};

const ANSWERS: Readonly<Record<Protocol, (error: Json) => void>> = {
  chat: ({ code, type }) => assert.deepEqual([code, type], ["context_length_exceeded", "invalid_request_error"]),
  messages({ type, message }) {
    assert.equal(type, "invalid_request_error");
    assert.match(String(message), /^prompt is too long: 10000 tokens > 8192 maximum/);
  },
  responses: ({ code, type }) => assert.deepEqual([code, type], ["context_length_exceeded", "invalid_request_error"]),
};

for (const direction of DIRECTIONS) {
  const { client, upstream } = direction;
  test(`${client} client, ${upstream} upstream: a refusal for context overflow has the client's own form`, async () => {
    const account = await here.account();
    for (const [how, body] of Object.entries(BODIES)) {
      here.simulator.program({ fault: { status: 400, body: JSON.stringify(body) } });
      const answer = await post(here, client, account.key, askFor(direction));
      assert.equal(answer.status, 400, how);
      ANSWERS[client](recordOf(((await answer.json()) as Json).error));
    }
  });

  test(`${client} client, ${upstream} upstream: a stream that fails with a context overflow is not reported as overload`, async () => {
    const account = await here.account();
    const error = { n: 6, type: "server_error", code: "server_error", message: WORDS };
    here.simulator.program({ text: "a few words ".repeat(20), fault: { errorEventAfter: error } });
    const answer = await post(here, client, account.key, askFor(direction, { stream: true }));
    assert.equal(answer.status, 200);
    const frames = framesOf(await answer.text()).filter(({ data }) => data.startsWith("{"));
    const last = JSON.parse(frames.at(-1)?.data ?? "{}") as Json;
    const failed = client === "responses" ? recordOf(last.response) : last;
    const { type, code, message } = recordOf(failed.error);
    if (client === "messages") {
      assert.equal(type, "invalid_request_error");
      assert.match(String(message), /^prompt is too long/);
    } else assert.equal(code, "context_length_exceeded");
  });
}

test("a vendor account without quota causes a failover, and is not reported as the client's fault", async () => {
  const account = await here.account();
  const bodies = {
    400: {
      type: "error",
      error: { type: "invalid_request_error", message: "Your credit balance is too low to access the API." },
    },
    429: {
      error: { message: "You exceeded your current quota", type: "insufficient_quota", code: "insufficient_quota" },
    },
  };
  for (const [status, body] of Object.entries(bodies)) {
    here.simulator.program({ fault: { status: Number(status), body: JSON.stringify(body) } }, { times: 1 });
    const answer = await post(here, "chat", account.key, askFor({ client: "chat", upstream: "chat" }));
    assert.equal(answer.status, 403);
    assert.equal(recordOf(((await answer.json()) as Json).error).cause, "upstream_forbidden");
  }
});

test("text that an error quotes from the request does not eject the upstream", async () => {
  const account = await here.account();
  const type = "invalid_request_error";
  const message =
    "Invalid schema for function 'f': 'credit balance is too low' is not valid under any of the given schemas.";
  const error = { type, code: "invalid_function_parameters", message };
  const ask = (more: Json) => post(here, "chat", account.key, askFor({ client: "chat", upstream: "chat" }, more));
  here.simulator.program({ fault: { status: 400, body: JSON.stringify({ error }) } }, { times: 1 });
  const refused = await ask({});
  assert.equal(refused.status, 400);
  assert.equal(recordOf(((await refused.json()) as Json).error).cause, "upstream_rejected");
  // The same as the first event of a stream.
  here.simulator.program({ fault: { errorEventAfter: { n: 0, ...error } } }, { times: 1 });
  const failed = await ask({ stream: true });
  assert.equal(failed.status, 400);
  assert.equal(recordOf(((await failed.json()) as Json).error).cause, "upstream_rejected");
});
