/**
 * docs/failure-model.md invariant 29: while the journal is unusable, new requests get 503 `journal_full`, readiness gives the
 * reason, and what was served is charged.
 */
import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import test from "node:test";
import { startGatewayHere } from "../../rig/gateway.ts";
import { RawSocket } from "../../rig/raw-socket.ts";

test("removing the journal's folder under load refuses new requests and charges the served ones", async (t) => {
  // Sixteen segments of 4 KiB: a few requests use up what is prepared.
  const here = await startGatewayHere({
    settings: (settings) => ({ ...settings, journal: { ...settings.journal, bytesMax: 64 * 1_024 } }),
  });
  t.after(() => here.close());
  const { key, tag } = await here.account();
  const ready = () => fetch(`${here.adminUrl}/readyz`);
  assert.equal((await ready()).status, 200);

  const ask = () =>
    fetch(`${here.url}/v1/messages`, {
      method: "POST",
      headers: { "x-api-key": key, "content-type": "application/json", "anthropic-version": "2023-06-01" },
      body: JSON.stringify({ model: "messages-1", max_tokens: 20, messages: [{ role: "user", content: "hello" }] }),
    });
  const first = await ask();
  assert.equal(first.status, 200);
  await first.arrayBuffer();

  rmSync(here.settings.journal.dir, { recursive: true });
  let served = 1;
  let refused: Response | undefined;
  while (!refused && served < 100) {
    const reply = await ask();
    if (reply.status === 200) served++;
    else refused = reply;
    if (reply.status === 200) await reply.arrayBuffer();
  }
  assert.ok(refused);
  assert.equal(refused.status, 503);
  assert.ok(Number(refused.headers.get("retry-after")) > 0);
  const { error } = (await refused.json()) as { error: { type: string; cause: string } };
  assert.deepEqual([error.type, error.cause], ["overloaded_error", "journal_full"]);

  // A body that could not be charged for is not waited for.
  const large = new RawSocket({ port: here.port }).send(
    "POST /v1/messages HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n",
    `x-api-key: ${key}\r\nContent-Length: 32000000\r\n\r\n`,
  );
  const [unread] = await large.responsesUntilClosed();
  assert.equal(unread?.status, 503);
  assert.equal(JSON.parse(unread.body).error.cause, "journal_full");

  const unready = await ready();
  assert.equal(unready.status, 503);
  assert.match(await unready.text(), /no room for the next journal segment|could not be written/);
  const page = await (await fetch(`${here.adminUrl}/metrics`)).text();
  for (const name of ["journal_unsettled", "journal_oldest_seconds", "journal_fill_ratio", "dead_letters"]) {
    assert.match(page, new RegExp(`^tollgate_${name} `, "m"));
  }
  assert.match(page, /^tollgate_unrecorded_charges 0$/m);
  const usage = (await here.store.readLedger(tag, 0, 200)).filter((line) => line.kind === "usage");
  assert.equal(usage.length, served);
  assert.equal(new Set(usage.map(({ reference }) => reference)).size, served);
});
