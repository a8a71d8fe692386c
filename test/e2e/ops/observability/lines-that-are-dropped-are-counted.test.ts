/** Lines of the log that are dropped, as nobody reads them, are on the page of metrics (test/unit/telemetry/lines-reach-the-output.test.ts). */
import assert from "node:assert/strict";
import test from "node:test";
import { createLog } from "../../../../src/telemetry/log.ts";
import { startGatewayHere } from "../../../rig/gateway.ts";

/** More than may wait. */
const TOO_MUCH = 8 * 1024 * 1024;

test("each once, and before the first there is a zero", async (t) => {
  const here = await startGatewayHere();
  t.after(() => here.close());
  const dropped = async () =>
    /^tollgate_log_lines_dropped_total (.*)$/m.exec(await (await fetch(`${here.adminUrl}/metrics`)).text())?.[1];
  assert.equal(await dropped(), "0");
  // Of this process' standard output, which gets none of it.
  const log = createLog({ level: "info" });
  for (let n = 0; n < 3; n++) log.info({ text: "x".repeat(TOO_MUCH) }, "said");
  assert.deepEqual([await dropped(), await dropped()], ["3", "3"]);
});
