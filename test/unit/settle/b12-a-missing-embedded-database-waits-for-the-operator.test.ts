/** docs/failure-model.md row B12 for the embedded store: at the next start its file is missing, or is an older copy. */
import assert from "node:assert/strict";
import { cpSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test, { type TestContext } from "node:test";
import { startSimulator } from "../../../src/simulator/server.ts";
import { openStore } from "../../../src/store/open.ts";
import { type GatewayProcess, spawnGateway, testConfig } from "../../rig/gateway.ts";
import {
  balanced,
  charged,
  chat,
  confirmStore,
  lookAgain,
  openAccount,
  readiness,
  tollgate,
  untilSettled,
} from "./lossy-scene.ts";

const FOLLOWED = "the journal follows this store";

interface Scene {
  readonly dir: string;
  readonly data: string;
  start(): Promise<GatewayProcess>;
}

async function scene(t: TestContext): Promise<Scene> {
  const dir = mkdtempSync(join(tmpdir(), "tollgate-b12-"));
  t.after(() => rmSync(dir, { recursive: true, force: true }));
  const simulator = await startSimulator();
  t.after(() => simulator.close());
  return {
    dir,
    data: join(dir, "data"),
    async start() {
      const gateway = await spawnGateway(testConfig({ upstreamUrl: simulator.url, dir }));
      t.after(() => gateway.stop("SIGKILL"));
      return gateway;
    },
  };
}

/** Removes the database and leaves the other files of the folder. */
function removeDatabase(data: string): void {
  for (const name of readdirSync(data)) if (name.startsWith("tollgate.db")) rmSync(join(data, name));
}

async function stateOf({ data }: Scene, name: string) {
  const store = await openStore({ kind: "embedded", dir: data });
  try {
    return await balanced(store, name);
  } finally {
    await store.close();
  }
}

test("an emptied database: accounts are restored with every charge after the operator's confirmation, and not before", async (t) => {
  const place = await scene(t);
  const first = await place.start();
  const key = await openAccount(first.adminUrl, "gone");
  for (let count = 0; count < 3; count++) assert.equal((await chat(first.url, key)).status, 200);
  await untilSettled(first.adminUrl);
  await first.stop();
  removeDatabase(place.data);

  const second = await place.start();
  await second.line("THE STORE LOST DATA");
  const refused = await chat(second.url, key);
  assert.deepEqual([refused.status, /"store_older"/.test(refused.text)], [503, true]);
  assert.match((await readiness(second.adminUrl)).reasons.join(), /^store_older: [^,]*, and nothing is admitted/);
  assert.match((await tollgate(second.adminUrl, "account", "list")).out, /No accounts/);
  await confirmStore(second.adminUrl);
  await second.line(FOLLOWED);
  assert.equal((await chat(second.url, key)).status, 200);
  await untilSettled(second.adminUrl);
  await second.stop();
  const state = await stateOf(place, "gone");
  assert.equal(charged(state).length, 4);
  assert.equal(state.account.balance + state.account.spent, 5_000_000_000n);
});

test("putting the right database back needs no confirmation", async (t) => {
  const place = await scene(t);
  const first = await place.start();
  const key = await openAccount(first.adminUrl, "kept");
  await first.stop();
  const aside = join(place.dir, "aside");
  cpSync(place.data, aside, { recursive: true });
  removeDatabase(place.data);
  const second = await place.start();
  await second.line("THE STORE LOST DATA");
  await second.stop();
  removeDatabase(place.data);
  cpSync(aside, place.data, { recursive: true });
  const third = await place.start();
  assert.equal((await chat(third.url, key)).status, 200);
  assert.doesNotMatch(third.output(), /THE STORE LOST DATA/);
});

test("an empty journal with a filled store, and both empty, are no loss", async (t) => {
  const place = await scene(t);
  const first = await place.start();
  const key = await openAccount(first.adminUrl, "stays");
  await first.stop();
  rmSync(join(place.dir, "journal"), { recursive: true });
  const second = await place.start();
  assert.equal((await chat(second.url, key)).status, 200);
  await second.stop();
  rmSync(join(place.dir, "journal"), { recursive: true });
  removeDatabase(place.data);
  const third = await place.start();
  await lookAgain(third.url);
  for (const gateway of [second, third]) assert.doesNotMatch(gateway.output(), /THE STORE LOST DATA/);
});
