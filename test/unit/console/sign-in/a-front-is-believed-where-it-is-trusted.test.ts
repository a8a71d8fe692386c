/** The name that a front gives: believed from a trusted front only, and for as long as the front gives it. */
import assert from "node:assert/strict";
import test from "node:test";
import { HOST, startOwners } from "./owners.ts";

const trustedHeader = "x-forwarded-user";

test("a front names an account, which is in for as long as it is named", async (t) => {
  const owners = await startOwners(t, { trustedHeader });
  for (const name of ["alice", "bob"]) await owners.account(name);
  const browser = owners.browser({ throughFront: true, headers: { [trustedHeader]: "alice" } });
  assert.equal((await browser.get("/sign-in/ways")).json.front, "alice");
  assert.equal((await browser.post("/sign-in/front")).status, 200);
  assert.equal(await browser.account(), "alice");
  const others: readonly Record<string, string>[] = [{ [trustedHeader]: "bob" }, {}];
  for (const headers of others) {
    browser.where = { throughFront: true, headers };
    assert.equal((await browser.get("/session")).code, "signed_out", JSON.stringify(headers));
  }
  browser.where = { headers: { [trustedHeader]: "alice" } };
  assert.equal((await browser.get("/session")).code, "signed_out", "around the front");
});

test("nobody else is believed, nor a front that names nobody there is, or two", async (t) => {
  const owners = await startOwners(t, { trustedHeader });
  for (const name of ["alice", "bob"]) await owners.account(name);
  const wrong: readonly [where: Parameters<typeof owners.browser>[0], named: string][] = [
    [{ headers: { [trustedHeader]: "alice" } }, ""],
    [{ throughFront: true, headers: { [trustedHeader]: "carol" } }, "carol"],
    [{ throughFront: true, headers: { [trustedHeader]: "alice, bob" } }, "alice, bob"],
    [{ throughFront: true, headers: { [trustedHeader]: "" } }, ""],
    [{ throughFront: true, headers: { "x-forwarded-email": "alice" } }, ""],
    [{ throughFront: true }, ""],
  ];
  for (const [where, named] of wrong) {
    const browser = owners.browser(where);
    assert.equal((await browser.post("/sign-in/front")).code, "front_names_nobody", JSON.stringify(where));
    const line = owners.log.at(-1);
    assert.deepEqual([line?.what, line?.who, line?.target], ["session.begin", "nobody", named], "the audit");
    assert.equal(await browser.account(), undefined);
  }
  const unset = await startOwners(t);
  await unset.account("alice");
  const browser = unset.browser({ throughFront: true, headers: { [trustedHeader]: "alice" } });
  assert.equal((await browser.get("/sign-in/ways")).json.front, null);
  assert.equal((await browser.post("/sign-in/front")).code, "front_names_nobody");
});

test("a front is believed under the name of public_url only, whatever its port", async (t) => {
  const owners = await startOwners(t, { trustedHeader });
  await owners.account("alice");
  const front = { throughFront: true, headers: { [trustedHeader]: "alice" } };
  // A page of this name, which now leads here: to its browser the two are one origin.
  const rebound = owners.browser({ ...front, host: "evil.example", origin: "http://evil.example" });
  assert.equal((await rebound.get("/sign-in/ways")).json.front, null);
  assert.equal((await rebound.post("/sign-in/front")).code, "front_names_nobody");
  const browser = owners.browser({ ...front, host: `${HOST}:8443` });
  assert.equal((await browser.post("/sign-in/front")).status, 200);
  assert.equal(await browser.account(), "alice");
  browser.where = { ...front, host: "evil.example", origin: "http://evil.example" };
  assert.equal((await browser.get("/session")).code, "signed_out");
});
