/**
 * docs/translation-rules.md rule 49: what was complete before a failure stays. `response.failed` repeats the items that
 * the client has got completely, whatever the server's protocol. Every recording is cut after each of its frames.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { openExchange } from "../../../../src/convert/bridge.ts";
import type { StreamConverter } from "../../../../src/convert/exchange.ts";
import { isRefusal } from "../../../../src/values/errors.ts";
import { PROTOCOL_NAMES, type Protocol } from "../../../../src/values/protocol.ts";
import { clientRequest, countingContext, failureOf, framesOf, REQUEST_ID, routeOf, smallBody } from "./rig.ts";
import { recordings } from "./stream-cases.ts";

function converterOf(upstream: Protocol): StreamConverter {
  const request = clientRequest("responses", smallBody("responses", { stream: true }));
  const permitted = { outputLimit: undefined, strict: false };
  const exchange = openExchange(request, routeOf(upstream), permitted, countingContext());
  assert.ok(!isRefusal(exchange));
  return exchange.stream();
}

/** The frames that the client has after its upstream sent these bytes and broke off; undefined if nothing broke. */
function broken(upstream: Protocol, bytes: string) {
  const converter = converterOf(upstream);
  const pieces = [...converter.push(Buffer.from(bytes)), ...converter.end()];
  if (!converter.fault || !converter.opened) return undefined;
  const last = converter.fail(failureOf(converter.fault), REQUEST_ID);
  const text = Buffer.concat([...pieces.map((frame) => frame.bytes), last]).toString();
  return framesOf(text.replaceAll(/^:.*\n\n/gm, ""));
}

for (const upstream of PROTOCOL_NAMES) {
  test(`${upstream} upstream`, () => {
    let withItems = 0;
    for (const bytes of new Set(recordings(upstream).map((recording) => recording.bytes.toString()))) {
      const frames = bytes.replaceAll("\r\n", "\n").split(/(?<=\n\n)/);
      for (let count = 1; count < frames.length; count++) {
        const got = broken(upstream, frames.slice(0, count).join(""));
        if (!got) continue;
        const done = got.filter(({ data }) => data.type === "response.output_item.done").map(({ data }) => data.item);
        const failed = got.at(-1)?.data as { type: string; response: { output: unknown } };
        assert.equal(failed.type, "response.failed");
        assert.deepEqual(failed.response.output, done);
        if (done.length > 0) withItems++;
      }
    }
    assert.ok(withItems > 10, `${withItems} of the cuts follow an item`);
  });
}

test("items of more than a megabyte in total are not kept for it", () => {
  const event = (payload: object) => `data: ${JSON.stringify(payload)}\n\n`;
  const part = { type: "output_text", text: "x".repeat(600_000), annotations: [] };
  const item = { id: "msg_1", type: "message", role: "assistant", status: "completed", content: [part] };
  const begun = event({ type: "response.created", response: { id: "resp_1", object: "response", output: [] } });
  const done = (output_index: number) => event({ type: "response.output_item.done", output_index, item });
  const outputAfter = (bytes: string) => {
    const failed = broken("responses", bytes)?.at(-1)?.data as { response: { output: unknown[] } } | undefined;
    return failed?.response.output.length;
  };
  assert.equal(outputAfter(begun + done(0)), 1);
  assert.equal(outputAfter(begun + done(0) + done(1)), 0);
});
