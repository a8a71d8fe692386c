/** A card pays for the models of its own plan only. Where it does not pay, the page must not say that no card runs. */
import assert from "node:assert/strict";
import test, { after } from "node:test";
import { closeBrowser } from "../../../../rig/browser.ts";
import { testConfig } from "../../../../rig/config.ts";
import { startGatewayHere } from "../../../../rig/gateway.ts";
import { ownerWindow } from "./owner-pages.ts";

after(closeBrowser);

test("the models page says that no running card includes a model that is not in the card's plan", async (t) => {
  const gateway = await startGatewayHere({
    config: (places) =>
      testConfig(places, (base) => ({
        models: { "chat-1": { ...base.models["chat-1"], plans: ["free"] } },
        groups: { cards: base.groups.cards },
        cards: { day: { plan: "pro", group: "cards", lasts: "1d" } },
      })),
  });
  t.after(() => gateway.close());
  const { name } = await gateway.account({ group: "cards" });
  const given = await fetch(`${gateway.adminUrl}/admin/v1/accounts/${name}/gifts`, {
    method: "POST",
    headers: { authorization: `Bearer ${gateway.gateway.adminToken}`, "content-type": "application/json" },
    body: JSON.stringify({ card: "day", id: "gift" }),
  });
  assert.equal(given.status, 201);
  const { page } = await ownerWindow(t, gateway, name, "models");
  const reason = await page.locator(".groups li span.faint").first().innerText();
  assert.equal(reason, "no running time card of this group includes it");
});
