/**
 * An answer about what a server keeps costs its client nothing and can have 32 MiB. Its ids are found in one pass and replaced in one
 * copy. One pass for each of them held the event loop for half a second, because an escaped quote is slow to skip (invariant 27).
 */
import assert from "node:assert/strict";
import test from "node:test";
import { storedAnswer } from "../../../../src/convert/responses/stored/reply.ts";
import { WrappedIds } from "../../../../src/convert/responses/stored/stored.ts";
import { workTimer } from "../../../rig/stopwatch.ts";
import { OWN } from "./rig.ts";

const LINES = 400_000;
const RUNS = 4;

test("replacing the ids and containers of a large stored response takes about as long as parsing it", () => {
  const text = 'say "hello"\n'.repeat(LINES);
  const items = [1, 2, 3].map((number) => ({
    id: `msg_${number}`,
    type: "message",
    container_id: `cntr_${number}`,
    content: [{ type: "output_text", text }],
  }));
  const said = { id: "resp_1", previous_response_id: "resp_0", model: "at-the-server", output: items };
  const body = Buffer.from(JSON.stringify(said));
  const ids = new WrappedIds({ upstream: "east", model: "big-1" }, OWN);
  const least = (work: () => void) =>
    Math.min(
      ...Array.from({ length: RUNS }, () => {
        const took = workTimer();
        work();
        return took();
      }),
    );
  const parsingMs = least(() => JSON.parse(body.toString()));
  let answer: Uint8Array = body;
  const replacingMs = least(() => {
    answer = storedAnswer(body, ids, "big-1");
  });
  const { output, ...own } = JSON.parse(Buffer.from(answer).toString());
  assert.deepEqual(own, { id: ids.of("resp_1"), previous_response_id: ids.of("resp_0"), model: "big-1" });
  for (const [at, item] of items.entries()) {
    assert.equal(output[at].id, ids.of(item.id));
    assert.equal(output[at].container_id, ids.of(item.container_id));
    assert.ok(output[at].content[0].text === text, "the text stays");
  }
  assert.ok(replacingMs < 4 * parsingMs, `${replacingMs} ms, and ${parsingMs} ms to parse it`);
});
