/**
 * A request that is admitted and then refused for lack of room belongs to a group, like one that is refused by a limit: the
 * message names the group, and the metrics count the refusal for it.
 */
import assert from "node:assert/strict";
import test from "node:test";
import type { Permit } from "../../../src/admit/permit.ts";
import { enterFlight } from "../../../src/request/pick.ts";
import type { PipelineParts, Run } from "../../../src/request/run.ts";
import { answerOf, refusal } from "../../../src/values/errors.ts";
import type { WellFormedKey } from "../../../src/values/key.ts";

test("the refusal of an admitted request names the group that would have paid", () => {
  const parts = { overload: { enter: () => refusal("concurrency", { detail: "Too many." }) } };
  const run = { leave: undefined } as unknown as Run;
  const permit = { group: { name: "money" } } as unknown as Permit;
  const refused = enterFlight(run, {} as WellFormedKey, permit, parts as unknown as PipelineParts);
  assert.ok(refused);
  assert.equal(refused.facts.group, "money");
  const { message } = answerOf(refused, 503);
  assert.match(message, /Too many\..*Group: "money"\./);
  assert.equal(run.leave, undefined);
});
