/** Overview, keys and cards, empty and full, light and dark, narrow and wide: nothing is too wide, axe finds nothing serious. */
import test, { after } from "node:test";
import { closeBrowser } from "../../../../rig/browser.ts";
import { furnish, startHouse } from "./house.ts";
import { lookAt } from "./signed-in.ts";

after(closeBrowser);

test("pages of an account that has something of everything", async (t) => {
  const gateway = await startHouse();
  t.after(() => gateway.close());
  const account = await gateway.account({ usd: "12.5" });
  await furnish(gateway, account);
  await lookAt(t, gateway, account.name, [
    { name: "overview", path: "" },
    { name: "keys", path: "keys" },
    { name: "key", path: `keys/${account.keyId}` },
    { name: "new-key", path: "keys/new" },
    { name: "cards", path: "cards" },
  ]);
});

test("pages of an account that has nothing", async (t) => {
  const gateway = await startHouse();
  t.after(() => gateway.close());
  const account = await gateway.account({ usd: "0" });
  await lookAt(t, gateway, account.name, [
    { name: "overview-empty", path: "" },
    { name: "cards-empty", path: "cards" },
    { name: "keys-none-found", path: "keys?search=nobody" },
  ]);
});
