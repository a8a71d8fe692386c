/**
 * `--pretty`: the same lines in a form for people. A client's text cannot forge a second line (docs/failure-model.md
 * row 77).
 */
import assert from "node:assert/strict";
import { Writable } from "node:stream";
import test from "node:test";
import { linesForPeople } from "../../../src/telemetry/lines-for-people.ts";
import { createLog } from "../../../src/telemetry/log.ts";

function written(): { text: () => string; destination: Writable } {
  const chunks: string[] = [];
  const destination = new Writable({
    write(chunk, _encoding, done) {
      chunks.push(String(chunk));
      done();
    },
  });
  return { text: () => chunks.join(""), destination };
}

test("a pretty log has one readable line for each message, whatever its values contain", async () => {
  const { text, destination } = written();
  const log = createLog({ level: "info", destination: linesForPeople(destination) });
  log.info({ model: 'gpt\n{"level":"error"}\u001b[31m', status: 200 }, "request");
  log.warn({ apiKey: "canary", nested: { key: "canary" } }, "second");
  await new Promise((resolve) => destination.end(resolve));
  const lines = text().trimEnd().split("\n");
  assert.equal(lines.length, 2);
  assert.match(lines[0] ?? "", /^\[[0-9:.]+\] INFO: request \{/);
  assert.match(lines[1] ?? "", /WARN: second/);
  assert.ok(!text().includes("\u001b"));
});
