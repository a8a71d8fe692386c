/**
 * docs/failure-model.md row B9, invariants 28 and 34: each error reply, at admission and at settlement, on the whole
 * gateway. A single error is not noticed; lasting ones cause 503, never 401, 403 or 404; what was served in the
 * meantime is charged once.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { openStore } from "../../../../src/store/open.ts";
import { Secret } from "../../../../src/values/secret.ts";
import { PATIENT } from "../../../unit/store/benches.ts";
import { scene, settledState } from "./rig.ts";

const ERRORS = [
  "LOADING Redis is loading the dataset in memory",
  "READONLY You can't write against a read only replica.",
  "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
  "CLUSTERDOWN The cluster is down",
  "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.",
  "OOM command not allowed when used memory > 'maxmemory'.",
  "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk.",
  "NOREPLICAS Not enough good replicas to write.",
  "NOAUTH Authentication required.",
  "NOPERM this user has no permissions to run the 'evalsha' command",
  "TRYAGAIN Multiple keys request during rehashing of slot",
];
const MANY = 1_000_000;

for (const error of ERRORS) {
  const name = error.split(" ")[0] as string;
  test(`${name}: a single error is not noticed, and lasting errors are 503`, async (t) => {
    // Error replies come at once; what READONLY needs in addition, another connection, takes as long as a busy machine
    // needs.
    const s = await scene(t, { storeTimes: PATIENT });
    // Not through the proxy: reading a ledger is a script, too.
    const direct = await openStore({ kind: "redis", url: new Secret(s.redis.url) });
    t.after(() => direct.close());
    assert.equal(await s.status(), "200");
    s.proxy.answerWith(error, 1);
    assert.equal(await s.status("messages"), "200", "the error occurs once, at admission");
    await settledState(s, 2);

    s.here.simulator.hold();
    const running = Promise.all([s.status(), s.status("messages"), s.status("responses")]);
    await s.here.simulator.waitFor(5);
    s.proxy.answerWith(error, MANY);
    s.here.simulator.release();
    assert.deepEqual(
      await running,
      ["200", "200", "200"],
      "running requests are served to the end, whatever the store answers",
    );
    for (let i = 0; i < 6; i++) assert.equal(await s.status(), "503 store_unavailable");
    const state = await direct.inspect(s.account.tag);
    assert.equal(state?.ledger.filter(({ kind }) => kind === "usage").length, 2);

    s.proxy.answerWith(error, 0);
    await settledState(s, 5);
    let last = "";
    while (last !== "200") {
      last = await s.status();
      assert.ok(["200", "503 store_unavailable"].includes(last), last);
    }
    await settledState(s, 6);
  });
}
