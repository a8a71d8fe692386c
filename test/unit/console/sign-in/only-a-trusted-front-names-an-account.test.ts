/** The account name that a front sends: accepted only from a trusted front, and for as long as the front sends it. */
import assert from "node:assert/strict";
import test from "node:test";
import { HOST, startOwners } from "./owners.ts";

const trustedHeader = "x-forwarded-user";

test("a front signs in the account that it names, for as long as it names it", async (t) => {
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
  assert.equal((await browser.get("/session")).code, "signed_out", "the request does not come through the front");
});

test("no other peer is accepted, nor a front that names an unknown account or two accounts", async (t) => {
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

test("a front is accepted only under the host of public_url, whatever its port", async (t) => {
  const owners = await startOwners(t, { trustedHeader });
  await owners.account("alice");
  const front = { throughFront: true, headers: { [trustedHeader]: "alice" } };
  // A page served earlier under this name, which now leads to the gateway: the browser sees one origin.
  const rebound = owners.browser({ ...front, host: "evil.example", origin: "http://evil.example" });
  assert.equal((await rebound.get("/sign-in/ways")).json.front, null);
  assert.equal((await rebound.post("/sign-in/front")).code, "front_names_nobody");
  const browser = owners.browser({ ...front, host: `${HOST}:8443` });
  assert.equal((await browser.post("/sign-in/front")).status, 200);
  assert.equal(await browser.account(), "alice");
  browser.where = { ...front, host: "evil.example", origin: "http://evil.example" };
  assert.equal((await browser.get("/session")).code, "signed_out");
});
