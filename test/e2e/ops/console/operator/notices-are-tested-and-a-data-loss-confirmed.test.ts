/** The page of notices tests a receiver, and a store that lost its data is confirmed from its page. */
import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test, { after } from "node:test";
import { startSimulator } from "../../../../../src/simulator/server.ts";
import { Secret } from "../../../../../src/values/secret.ts";
import { NOTICE_KINDS } from "../../../../../src/values/settings.ts";
import { closeBrowser, openWindow } from "../../../../rig/browser.ts";
import { spawnGateway, testConfig } from "../../../../rig/gateway.ts";
import { openAccount, readiness, untilSettled } from "../../../../unit/settle/lossy-scene.ts";
import { startReceiver, webhookSecret } from "../../../money/notices/receiver.ts";
import { assertUsable, openOperator, signIn, write } from "./world.ts";

after(closeBrowser);

test("a receiver is tested and its answer shown, and waiting notices are sent again", async (t) => {
  const receiver = await startReceiver(webhookSecret("one"));
  t.after(() => receiver.close());
  const notices = {
    url: new Secret(receiver.url),
    secrets: [new Secret(webhookSecret("one"))],
    kinds: new Set(NOTICE_KINDS),
    balanceBelowNano: 20_000_000_000,
    cardEndsWithinMs: 86_400_000,
  };
  const world = await openOperator(t, { gateway: { settings: (settings) => ({ ...settings, notices }) } });
  const { page, open, complaints } = world;
  receiver.answer = () => ({ status: 200 });
  await open("notices");
  await page.getByText(new URL(receiver.url).origin).waitFor();
  await write(page, "Send a test");
  await page.getByText("The receiver accepted it").waitFor();
  await page.keyboard.press("Escape");
  receiver.answer = () => ({ status: 500 });
  await write(page, "Send a test");
  await page.getByText("The receiver did not accept it").waitFor();
  await assertUsable(page, "notices-refused");
  await page.keyboard.press("Escape");
  await world.admin("POST", "/accounts", { name: "alice" });
  receiver.answer = () => ({ status: 200 });
  await write(page, "Retry now");
  await page.getByRole("dialog").waitFor({ state: "detached" });
  assert.deepEqual(complaints, []);
});

test("a store that lost its data is inspected and confirmed in the browser, by an operator who signs in meanwhile", async (t) => {
  const dir = mkdtempSync(join(tmpdir(), "tollgate-console-store-"));
  t.after(() => rmSync(dir, { recursive: true, force: true }));
  const simulator = await startSimulator();
  t.after(() => simulator.close());
  const start = async () => {
    const gateway = await spawnGateway(testConfig({ upstreamUrl: simulator.url, dir }));
    t.after(() => gateway.stop("SIGKILL"));
    return gateway;
  };
  const first = await start();
  await openAccount(first.adminUrl, "gone");
  await untilSettled(first.adminUrl);
  await first.stop();
  const data = join(dir, "data");
  for (const name of readdirSync(data)) if (name.startsWith("tollgate.db")) rmSync(join(data, name));
  const second = await start();
  await second.line("THE STORE LOST DATA");

  const { page, complaints } = await openWindow(t);
  await page.goto(`${second.adminUrl}/console/store`);
  await signIn(page, "test-admin-token");
  await page.getByText("The store lost data.").waitFor();
  await page.getByText("the store is empty").waitFor();
  await assertUsable(page, "store-stopped");
  const shown = (await page.locator("main p code").textContent()) ?? "";
  await write(page, "Use the store as it is", { "Type these 12 characters to confirm": "0123456789ab" });
  await page.getByText("These are not the 12 characters.").waitFor();
  assert.match((await readiness(second.adminUrl)).reasons.join(), /^store_older: [^,]*, and nothing is admitted/);
  await page.getByRole("dialog").getByLabel("Type these 12").fill(shown);
  await page.getByRole("dialog").getByRole("button", { name: "Use the store as it is" }).click();
  await page.getByText("The store has all of its data.").waitFor();
  await page.goto(`${second.adminUrl}/console/accounts`);
  await page.getByRole("link", { name: "gone" }).waitFor();
  assert.deepEqual(complaints, []);
});
