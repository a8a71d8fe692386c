/** docs/decisions/stateful-upstreams-get-wrapped-ids.md: of what a server keeps, a client gets only ids that it can send back. */
import assert from "node:assert/strict";
import test from "node:test";
import { storedAnswer } from "../../../../src/convert/responses/stored/reply.ts";
import { WrappedIds } from "../../../../src/convert/responses/stored/stored.ts";
import { OWN } from "./rig.ts";

const IDS = new WrappedIds({ upstream: "east", model: "big-1" }, OWN);

/** A response, or a page of its items, with these ids. */
const answerWith = (of: (id: string) => string | undefined, model: string) => {
  const item = {
    ...{ id: of("sh_1"), type: "shell_call", container_id: of("cntr_1"), approval_request_id: of("mcpr_1") },
    environment: { type: "container_reference", container_id: of("cntr_2") },
  };
  const withheld = { id: of("rs_1"), action: "removed", reason: "prefix_mismatch", type: "reasoning" };
  return {
    id: of("resp_1"),
    first_id: of("sh_1"),
    last_id: of("sh_1"),
    model,
    output: [item],
    data: [item],
    input_transformations: [withheld],
  };
};

test("ids of items, of containers, of the environments of items and of withheld reasoning are wrapped, in a response and in a page", () => {
  const body = Buffer.from(JSON.stringify(answerWith((id) => id, "at-the-server")));
  const answer = JSON.parse(Buffer.from(storedAnswer(body, IDS, "big-1")).toString());
  assert.deepEqual(
    answer,
    answerWith((id) => IDS.of(id), "big-1"),
  );
});

test("a model that is no text stays", () => {
  const body = Buffer.from('{"id":7,"model":null,"output":null}');
  assert.equal(storedAnswer(body, IDS, "big-1"), body);
});
