/** If an upstream of another protocol refuses, is busy or is down, the client reads an error of its own protocol. */
import assert from "node:assert/strict";
import test, { after, afterEach, before } from "node:test";
import type { Fault } from "../../../../src/simulator/server.ts";
import type { Protocol } from "../../../../src/values/protocol.ts";
import type { GatewayHere } from "../../../rig/gateway.ts";
import { usageLines } from "../whole/asking.ts";
import { askFor, CROSS_DIRECTIONS, type Json, post, recordOf, startDirections } from "./rig.ts";

let here: GatewayHere;

before(async () => {
  here = await startDirections();
});

afterEach(() => here.simulator.clearPrograms());
after(() => here.close());

const TOO_LONG = "prompt is too long: 210000 tokens > 200000 maximum";

interface Expected {
  readonly status: number;
  readonly type: string;
  readonly cause: string;
  readonly retryAfter?: string;
  readonly words?: string;
}

const SICK: Expected = { status: 403, type: "permission_error", cause: "upstream_unavailable", retryAfter: "2" };

const CASES: readonly (readonly [name: string, fault: Fault, expected: Expected])[] = [
  [
    "a 400 with text that clients look for",
    { status: 400, message: TOO_LONG },
    { status: 400, type: "invalid_request_error", cause: "upstream_rejected", words: TOO_LONG },
  ],
  [
    "a 429 with a time to wait",
    { status: 429, retryAfter: 7 },
    { status: 429, type: "rate_limit_error", cause: "upstream_rate_limit", retryAfter: "7" },
  ],
  ["a 503", { status: 503 }, SICK],
  ["a 529", { status: 529, type: "overloaded_error" }, SICK],
];

for (const direction of CROSS_DIRECTIONS) {
  for (const [name, fault, expected] of CASES) {
    for (const stream of [false, true]) {
      const how = stream ? "streamed" : "whole";
      test(`${direction.client} client, ${direction.upstream} upstream, ${how}: ${name}`, async () => {
        const account = await here.account();
        here.simulator.program({ fault }, { times: Infinity });
        const reply = await post(here, direction.client, account.key, askFor(direction, { stream }));
        assert.equal(reply.status, expected.status);
        assert.equal(reply.headers.get("content-type"), "application/json");
        assert.equal(reply.headers.get("x-tollgate-origin"), "upstream");
        assert.equal(reply.headers.get("retry-after"), expected.retryAfter ?? null);
        const body = (await reply.json()) as Json;
        const error = recordOf(body.error);
        assert.deepEqual([error.type, error.cause], [expected.type, expected.cause]);
        if (expected.words !== undefined) assert.ok(String(error.message).includes(expected.words));
        assertShape(direction.client, body);
        await here.requestEnd(reply.headers.get("x-request-id") ?? "");
        assert.deepEqual(await usageLines(here, account), []);
        assert.deepEqual((await here.store.inspect(account.tag))?.holds, []);
      });
    }
  }
}

/** The members that distinguish the protocols' error bodies (docs/errors.md). */
function assertShape(client: Protocol, body: Json): void {
  const error = recordOf(body.error);
  assert.equal(typeof error.message, "string");
  if (client === "messages") {
    assert.equal(body.type, "error");
    assert.equal(typeof body.request_id, "string");
    assert.ok(!("code" in error) && !("param" in error));
  } else {
    assert.ok(!("type" in body));
    assert.ok("code" in error && "param" in error);
  }
}
