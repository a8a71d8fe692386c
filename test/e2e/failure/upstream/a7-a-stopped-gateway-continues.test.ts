/**
 * docs/failure-model.md row A7: a gateway that was stopped for a while (SIGSTOP, a long pause of its VM) continues
 * normally.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { ask, chat, ledgerOf, nano, openAccount, startDeployment, untilNothingHeld } from "../../money/shared/rig.ts";

const FUNDS = 10_000_000_000n;

for (const store of ["embedded", "redis"] as const) {
  test(`${store}: streams that ran are answered and charged once, and new requests are served`, async () => {
    const made = await startDeployment({ store, gateways: store === "redis" ? 2 : 1 });
    try {
      const [gateway, other] = made.gateways;
      assert.ok(gateway);
      const { key, name } = await openAccount(gateway, { funds: FUNDS });
      made.simulator.hold();
      const running = Array.from({ length: 5 }, () => ask(gateway, key, chat({ stream: true })));
      await made.simulator.waitFor(5);
      gateway.child.kill("SIGSTOP");
      // The upstream answers, and a client sends a request, while the gateway is stopped.
      made.simulator.release();
      const waiting = ask(gateway, key, chat());
      if (other) assert.equal((await ask(other, key, chat())).status, 200);
      gateway.child.kill("SIGCONT");
      for (const answer of [...(await Promise.all(running)), await waiting]) assert.equal(answer.status, 200);
      assert.equal((await ask(gateway, key, chat())).status, 200);
      const { balance } = await untilNothingHeld(gateway, name);
      const lines = (await ledgerOf(gateway, name)).filter((line) => line.kind === "usage");
      const charges = other ? 8 : 7;
      assert.equal(lines.length, charges);
      assert.equal(new Set(lines.map((line) => line.reference)).size, charges);
      const spent = lines.reduce((sum, line) => sum + nano(line.usd), 0n);
      assert.equal(balance, FUNDS - (spent < 0n ? -spent : spent));
    } finally {
      for (const { child } of made.gateways) child.kill("SIGCONT");
      await made.close();
    }
  });
}
