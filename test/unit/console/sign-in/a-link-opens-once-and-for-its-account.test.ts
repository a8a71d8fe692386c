/**
 * Sign-in links against attackers without one: wrong, used, expired, of another account; and who may send requests of a
 * session.
 */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import test from "node:test";
import { bent, HOST, type Owners, SEALER, startOwners } from "./owners.ts";

async function enter(owners: Owners, name: string) {
  const browser = owners.browser();
  const link = await owners.link((await owners.store.findAccount(name))?.tag ?? (await owners.account(name)));
  assert.equal((await browser.post("/sign-in/link", { token: link })).status, 200);
  return browser;
}

test("of several browsers that open a link at once, one is signed in", async (t) => {
  const owners = await startOwners(t);
  const token = await owners.link(await owners.account("alice"));
  const all = await Promise.all(Array.from({ length: 8 }, () => owners.browser().post("/sign-in/link", { token })));
  assert.deepEqual(all.map(({ status }) => status).sort(), [200, 401, 401, 401, 401, 401, 401, 401]);
});

test("a link that is wrong, expired or of another account opens nothing", async (t) => {
  const owners = await startOwners(t);
  const [alice, bob] = [await owners.account("alice"), await owners.account("bob")];
  const token = await owners.link(alice);
  const [, secret] = token.split(".");
  for (const wrong of [
    `${alice}.`,
    `${bob}.${secret}`,
    `operator.${secret}`,
    `${alice}.${"A".repeat(32)}`,
    token.slice(1),
  ]) {
    const browser = owners.browser();
    assert.equal((await browser.post("/sign-in/link", { token: wrong })).code, "link_is_over", wrong);
    assert.equal(await browser.account(), undefined);
  }
  await owners.clock.advance(900_000);
  assert.equal((await owners.browser().post("/sign-in/link", { token })).code, "link_is_over");
});

test("what the store has of a link and of a session grants no access", async (t) => {
  const owners = await startOwners(t);
  const tag = await owners.account("alice");
  const [, secret = assert.fail()] = (await owners.link(tag)).split(".");
  const [kept] = await owners.store.listSignIns(tag);
  assert.equal(kept?.kind, "link");
  assert.equal((await owners.browser().post("/sign-in/link", { token: `${tag}.${kept.id.slice(0, 32)}` })).status, 401);
  const alice = await enter(owners, "alice");
  const [cookie = ""] = alice.cookies.values();
  const carried = JSON.parse(Buffer.from(SEALER.open(cookie, "console session") ?? assert.fail()).toString());
  assert.match(carried.secret, /^[A-Za-z0-9_-]{32}$/);
  const all = JSON.stringify(await owners.store.listSignIns(tag));
  for (const one of [secret, carried.secret, cookie]) assert.ok(!all.includes(one));
});

test("answers about the session are never cached on the way", async (t) => {
  const owners = await startOwners(t);
  const alice = await enter(owners, "alice");
  for (const browser of [alice, owners.browser()]) {
    for (const path of ["/session", "/accounts/alice/keys", "/sign-in/ways"]) {
      const { headers } = await browser.get(path);
      assert.deepEqual([headers["cache-control"], headers["x-content-type-options"]], ["no-store", "nosniff"], path);
    }
  }
});

test("a passkey challenge that was answered is no link", async (t) => {
  const owners = await startOwners(t);
  const tag = await owners.account("alice");
  const secret = "A".repeat(32);
  const { Challenges } = await import("../../../../src/console/sign-in/challenges.ts");
  const spender = new Challenges({ ...owners, sealer: undefined as never, random: randomBytes });
  assert.equal(await spender.spend(tag, secret), true);
  assert.equal((await owners.browser().post("/sign-in/link", { token: `${tag}.${secret}` })).code, "link_is_over");
});

test("a session ends with its time and its sign-out, and a changed cookie is worthless", async (t) => {
  const owners = await startOwners(t);
  const alice = await enter(owners, "alice");
  const kept = new Map(alice.cookies);
  assert.equal((await alice.post("/sign-out")).status, 200);
  assert.deepEqual([...alice.cookies], []);
  for (const [name, value] of kept) alice.cookies.set(name, value);
  assert.equal((await alice.get("/session")).code, "signed_out");
  const again = await enter(owners, "alice");
  assert.equal(await again.account(), "alice");
  const [[name, value = ""] = ["", ""]] = [...again.cookies];
  again.cookies.set(name, bent(value));
  assert.equal((await again.get("/session")).code, "signed_out");
  again.cookies.set(name, value);
  await owners.clock.advance(3_600_000);
  assert.equal((await again.get("/session")).code, "signed_out");
});

const FOREIGN = [
  ["another site's page", { "sec-fetch-site": "cross-site", origin: "https://evil.example" }],
  ["another port's page", { "sec-fetch-site": "same-site", origin: `https://${HOST}:8443` }],
  ["a page without the header that a form cannot send", { "x-tollgate-console": "" }],
  ["a page of no origin", { origin: "null" }],
] as const;

test("a page of another site can neither use an owner's session nor sign anyone in", async (t) => {
  const owners = await startOwners(t);
  const alice = await enter(owners, "alice");
  const link = await owners.link((await owners.store.findAccount("alice"))?.tag ?? assert.fail());
  for (const [what, headers] of FOREIGN) {
    for (const path of ["/sessions/end-others", "/sign-out", "/sign-in/passkey/options", "/passkeys/options"]) {
      assert.equal((await alice.ask("POST", path, undefined, headers)).code, "other_site", `${what}: ${path}`);
    }
    assert.equal(
      (await owners.browser().ask("POST", "/sign-in/link", { token: link }, headers)).code,
      "other_site",
      what,
    );
  }
  assert.equal(await alice.account(), "alice");
  assert.equal((await owners.browser().post("/sign-in/link", { token: link })).status, 200);
});

test("a page requested with a wrong method, and an unknown path, are 404 for everyone", async (t) => {
  const owners = await startOwners(t);
  const stranger = { "x-tollgate-console": "", "sec-fetch-site": "none" };
  for (const [method, path] of [
    ["POST", "/console/keys"],
    ["PUT", "/console/api/session"],
    ["DELETE", "/console/"],
    ["GET", "/console/api/nowhere"],
  ] as const) {
    const { status, code, headers } = await owners.browser().ask(method, path, undefined, stranger);
    assert.deepEqual([status, code], [404, "unknown_path"], `${method} ${path}`);
    assert.equal(headers["cache-control"], "no-store");
  }
});

test("the owner of a suspended account can read, end sessions and change nothing else", async (t) => {
  const owners = await startOwners(t);
  const alice = await enter(owners, "alice");
  await enter(owners, "alice");
  const tag = (await owners.store.findAccount("alice"))?.tag ?? assert.fail();
  await owners.store.changeAccount(tag, { status: "suspended" });
  const session = await alice.get("/session");
  assert.deepEqual([session.status, session.json.status], [200, "suspended"]);
  const made = await alice.post("/accounts/alice/keys", { group: "cards" });
  assert.deepEqual([made.status, made.code], [403, "account_suspended"]);
  assert.match(made.json.error.message, /^Your account is suspended\. Until your operator resumes it, you can see/);
  assert.equal((await owners.store.listKeys(tag)).length, 0);
  const left = await alice.post("/sessions/end-others");
  assert.deepEqual([left.status, left.json.sessions.length], [200, 1]);
  assert.deepEqual(
    owners.log.filter(({ what }) => what === "key.create").map(({ outcome, cause, who }) => [outcome, cause, who]),
    [["refused", "account_suspended", "owner:alice:link"]],
  );
});

test("a session of a client that sends no user agent has none", async (t) => {
  const owners = await startOwners(t);
  const alice = await enter(owners, "alice");
  const { json } = await alice.get("/access");
  assert.deepEqual(
    json.sessions.map(({ agent }: { readonly agent: string }) => agent),
    [""],
  );
});

test("a user agent is cut to what a list can show", async (t) => {
  const owners = await startOwners(t);
  const browser = owners.browser({ headers: { "user-agent": "Browser ".repeat(100) } });
  await browser.post("/sign-in/link", { token: await owners.link(await owners.account("alice")) });
  const { json } = await browser.get("/access");
  assert.equal(json.sessions[0].agent, "Browser ".repeat(25));
});

test("each sign-in, failure and sign-out has an audit line, and no line has a secret", async (t) => {
  const owners = await startOwners(t);
  const tag = await owners.account("alice");
  const token = await owners.link(tag);
  const browser = owners.browser({ headers: { "user-agent": "agent-canary" } });
  await browser.post("/sign-in/link", { token });
  const [cookie = ""] = browser.cookies.values();
  await browser.post("/sign-in/link", { token });
  await browser.post("/sign-out");
  assert.deepEqual(
    owners.log.map(({ what, outcome, cause, who, target, from, way }) => [
      what,
      outcome,
      cause,
      who,
      target,
      from,
      way,
    ]),
    [
      ["session.begin", "done", undefined, "owner:alice:link", "alice", "192.0.2.1", "link"],
      ["session.begin", "refused", "link_is_over", "nobody", "", "192.0.2.1", "link"],
      ["session.end", "done", undefined, "owner:alice:link", "alice", "192.0.2.1", undefined],
    ],
  );
  const all = JSON.stringify(owners.log);
  for (const secret of [token.slice(11), cookie, "agent-canary"]) assert.ok(!all.includes(secret));
});
