/**
 * docs/translation-rules.md rules 47 and 50: OpenAI's codes for kinds of refused content mean that the request is at
 * fault, wherever they stand. Another attempt would be refused again, and the server is healthy.
 */
import assert from "node:assert/strict";
import test, { after, afterEach, before } from "node:test";
import type { Fault } from "../../../../src/simulator/server.ts";
import type { GatewayHere } from "../../../rig/gateway.ts";
import { askFor, DIRECTIONS, type Direction, type Json, post, recordOf, startGateway } from "./rig.ts";

let here: GatewayHere;

before(async () => {
  here = await startGateway({ more: "", strict: false });
});

afterEach(() => here.simulator.clearPrograms());
after(() => here.close());

const MESSAGE = "This content cannot be processed under the usage policy.";
const CODES = ["bio_policy", "cyber_policy", "misalignment_policy_violation"];

/** How a server says it: by a status, in a reply with the status 200, and as the first event of a stream. */
function forms(upstream: Direction["upstream"], code: string): (readonly [stream: boolean, fault: Fault])[] {
  const error = { message: MESSAGE, type: "invalid_request_error", param: null, code };
  const failed = { object: "response", status: "failed", error: { code, message: MESSAGE }, output: [] };
  const inBody = { status: 200, headers: { "content-type": "application/json" } };
  return [
    [false, { status: 400, body: { error } }],
    [false, { status: 403, body: { error } }],
    [false, { ...inBody, body: upstream === "responses" ? failed : { error: { ...error, type: undefined } } }],
    [true, { errorEventAfter: { n: 0, code, message: MESSAGE, failed: true } }],
  ];
}

for (const direction of DIRECTIONS.filter(({ upstream }) => upstream !== "messages")) {
  const { client, upstream } = direction;
  test(`${client} client, ${upstream} upstream: it is a 400 after one attempt, in the server's words`, async () => {
    const { key } = await here.account();
    for (const code of CODES) {
      for (const [stream, fault] of forms(upstream, code)) {
        here.simulator.clearPrograms();
        here.simulator.program({ fault }, { times: Infinity });
        const before = here.simulator.requests.length;
        const reply = await post(here, direction.client, key, askFor(direction, { stream }));
        const error = recordOf(((await reply.json()) as Json).error);
        assert.equal(reply.status, 400, `${code} ${JSON.stringify(fault)}`);
        assert.deepEqual([error.cause, error.message], ["upstream_rejected", MESSAGE]);
        assert.equal(here.simulator.requests.length - before, 1, "attempts");
        if (client !== "messages") assert.equal(error.code, shown(code));
      }
    }
  });
}

/** Codex shows notices of its own for the first two. */
function shown(code: string): string {
  return code === "misalignment_policy_violation" ? "content_policy_violation" : code;
}

for (const [code, sent] of [
  ["bio_policy", "bio_policy"],
  ["cyber_policy", "cyber_policy"],
  ["misalignment_policy_violation", "invalid_prompt"],
] as const) {
  test(`inside a stream of another protocol, a responses client reads ${sent} for ${code}`, async () => {
    const { key } = await here.account();
    here.simulator.program({ fault: { errorEventAfter: { n: 3, code, message: MESSAGE } } }, { times: Infinity });
    const direction: Direction = { client: "responses", upstream: "chat" };
    const reply = await post(here, "responses", key, askFor(direction, { stream: true }));
    const failed = /^event: response\.failed\ndata: (.*)$/m.exec(await reply.text())?.[1] ?? "{}";
    assert.equal(recordOf(recordOf((JSON.parse(failed) as Json).response).error).code, sent);
  });
}
