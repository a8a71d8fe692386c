/** The console of owners is created for the first request. If that fails, it must not stay closed until a restart. */
import assert from "node:assert/strict";
import test from "node:test";
import { startOwners } from "../sign-in/owners.ts";

test("after the application could not be created, the next request creates it", async (t) => {
  let isBroken = true;
  const owners = await startOwners(
    t,
    {},
    (store) =>
      new Proxy(store, {
        get(target, name) {
          // The routes take this call from the store while they are added.
          if (name === "rotateKey" && isBroken) throw new Error("no descriptor is free");
          const found: unknown = Reflect.get(target, name);
          return typeof found === "function" ? found.bind(target) : found;
        },
      }),
  );
  const browser = owners.browser();
  await assert.rejects(browser.get("/session"), /no descriptor is free/);
  isBroken = false;
  const token = await owners.link(await owners.account("alice"));
  assert.equal((await browser.post("/sign-in/link", { token })).status, 200);
});
