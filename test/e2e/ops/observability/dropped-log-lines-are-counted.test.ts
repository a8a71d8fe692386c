/**
 * Log lines that are dropped because nothing reads them are counted on the metrics page
 * (test/unit/telemetry/log-lines-reach-the-output.test.ts).
 */
import assert from "node:assert/strict";
import test from "node:test";
import { createLog } from "../../../../src/telemetry/log.ts";
import { startGatewayHere } from "../../../rig/gateway.ts";

/** More bytes than may wait for the output. */
const TOO_MUCH = 8 * 1024 * 1024;

test("each dropped line is counted once, and the counter is at zero before the first", async (t) => {
  const here = await startGatewayHere();
  t.after(() => here.close());
  const dropped = async () =>
    /^tollgate_log_lines_dropped_total (.*)$/m.exec(await (await fetch(`${here.adminUrl}/metrics`)).text())?.[1];
  assert.equal(await dropped(), "0");
  // A log on this process' standard output, which receives none of it.
  const log = createLog({ level: "info" });
  for (let n = 0; n < 3; n++) log.info({ text: "x".repeat(TOO_MUCH) }, "said");
  assert.deepEqual([await dropped(), await dropped()], ["3", "3"]);
});
