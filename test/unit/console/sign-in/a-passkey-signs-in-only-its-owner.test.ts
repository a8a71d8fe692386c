/** Passkeys against attackers: forged, replayed, expired, of another site, of another account, copied. */
import assert from "node:assert/strict";
import { generateKeyPairSync } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import test from "node:test";
import { overlay } from "../../../../src/store/overlay.ts";
import type { NewSignIn } from "../../../../src/store/sign-ins.ts";
import { holding } from "../test-store.ts";
import { androidKey } from "./attestation.ts";
import { Authenticator, type Lies } from "./authenticator.ts";
import { type Browser, bent, HOST, ORIGIN, type Owners, startOwners } from "./owners.ts";

const MINUTE_MS = 60_000;

async function enter(owners: Owners, name: string): Promise<Browser> {
  const found = await owners.store.findAccount(name);
  const tag = found?.tag ?? (await owners.account(name));
  const browser = owners.browser();
  assert.equal((await browser.post("/sign-in/link", { token: await owners.link(tag) })).status, 200);
  return browser;
}

async function add(browser: Browser, key: Authenticator, lies: Lies = {}) {
  const { options, sealed } = (await browser.post("/passkeys/options")).json;
  return browser.post("/passkeys", { sealed, name: "Laptop", credential: key.create(options, lies) });
}

async function asked(browser: Browser) {
  const answer = await browser.post("/sign-in/passkey/options");
  assert.equal(answer.status, 200, JSON.stringify(answer.json));
  return answer.json as { readonly sealed: string; readonly options: { readonly challenge: string } };
}

async function signIn(browser: Browser, key: Authenticator, lies: Lies = {}) {
  const { options, sealed } = await asked(browser);
  return browser.post("/sign-in/passkey", { sealed, credential: key.get(options, lies) });
}

test("a passkey signs in its owner, and shows when it did", async (t) => {
  const owners = await startOwners(t);
  const key = new Authenticator(ORIGIN);
  const alice = await enter(owners, "alice");
  assert.equal((await add(alice, key)).status, 201);
  const browser = owners.browser();
  assert.equal((await signIn(browser, key)).status, 200);
  assert.equal(await browser.account(), "alice");
  const { passkeys, sessions } = (await browser.get("/access")).json;
  assert.deepEqual(
    passkeys.map(({ name, used_at: at }: { name: string; used_at: string }) => [name, Date.parse(at)]),
    [["Laptop", owners.clock.wallMs()]],
  );
  assert.deepEqual(
    sessions.map(({ way, from, is_this: isThis }: { way: string; from: string; is_this: boolean }) => [
      way,
      from,
      isThis,
    ]),
    [
      ["passkey", "192.0.2.1", true],
      ["link", "192.0.2.1", false],
    ],
  );
});

const stranger = generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey;
const LIES: readonly (readonly [what: string, lies: Lies])[] = [
  ["of another site", { origin: "https://evil.example" }],
  ["of the same host without encryption", { origin: `http://${HOST}` }],
  ["of another port", { origin: `${ORIGIN}:8443` }],
  ["made for another host", { host: "evil.example" }],
  ["to another challenge", { challenge: "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA" }],
  ["of the other kind", { type: "webauthn.other" }],
  ["without its owner at the device", { isVerified: false }],
];

test("a false answer signs nobody in and adds nothing", async (t) => {
  const owners = await startOwners(t);
  const alice = await enter(owners, "alice");
  const key = new Authenticator(ORIGIN);
  for (const [what, lies] of LIES) {
    assert.equal((await add(alice, key, lies)).code, "passkey_not_made", what);
  }
  assert.deepEqual((await alice.get("/access")).json.passkeys, []);
  assert.equal((await add(alice, key)).status, 201);
  const more = [
    ["signed by another key", { key: stranger }],
    ["that names nobody", { userHandle: "" }],
    ["that names the operator", { userHandle: Buffer.from("operator").toString("base64url") }],
    ["that names a field", { userHandle: Buffer.from("*:sign-ins").toString("base64url") }],
  ] as const;
  for (const [what, lies] of [...LIES, ...more]) {
    const browser = owners.browser({ address: "198.51.100.7" });
    assert.equal((await signIn(browser, key, lies)).code, "passkey_refused", what);
    assert.deepEqual([...browser.cookies], [], what);
    await owners.clock.advance(MINUTE_MS);
  }
  assert.equal((await signIn(owners.browser(), key)).status, 200);
});

test("a passkey signs in to no other account", async (t) => {
  const owners = await startOwners(t);
  const [alice, bob] = [await enter(owners, "alice"), await enter(owners, "bob")];
  const [key, other] = [new Authenticator(ORIGIN), new Authenticator(ORIGIN)];
  await add(alice, key);
  await add(bob, other);
  const browser = owners.browser();
  assert.equal((await signIn(browser, key, { userHandle: other.userHandle })).code, "passkey_refused");
  assert.deepEqual([...browser.cookies], []);
  // Records of the other account are not found.
  const [{ id }] = (await bob.get("/access")).json.passkeys;
  const sessions = (await bob.get("/access")).json.sessions;
  assert.equal((await alice.ask("PUT", `/passkeys/${id}/name`, { name: "mine" })).status, 404);
  assert.equal((await alice.post(`/passkeys/${id}/remove`)).status, 200);
  assert.equal((await alice.post(`/sessions/${sessions[0].id}/end`)).status, 200);
  assert.equal(await bob.account(), "bob");
  assert.equal((await signIn(owners.browser(), other)).status, 200);
});

test("an answer counts once, also if another browser sends it again", async (t) => {
  const owners = await startOwners(t);
  const alice = await enter(owners, "alice");
  const key = new Authenticator(ORIGIN);
  const made = (await alice.post("/passkeys/options")).json;
  const creation = { sealed: made.sealed, name: "Laptop", credential: key.create(made.options) };
  assert.equal((await alice.post("/passkeys", creation)).status, 201);
  assert.equal((await alice.post("/passkeys", creation)).code, "passkey_not_made");
  const browser = owners.browser();
  const { options, sealed } = await asked(browser);
  const body = { sealed, credential: key.get(options) };
  const all = await Promise.all(Array.from({ length: 8 }, () => owners.browser().post("/sign-in/passkey", body)));
  assert.deepEqual(all.map(({ status }) => status).sort(), [200, 401, 401, 401, 401, 401, 401, 401]);
  assert.equal((await browser.post("/sign-in/passkey", body)).code, "passkey_refused");
});

test("a challenge expires after five minutes, and is bound to its purpose and its session", async (t) => {
  const owners = await startOwners(t);
  const [alice, bob] = [await enter(owners, "alice"), await enter(owners, "bob")];
  const key = new Authenticator(ORIGIN);
  const own = (await alice.post("/passkeys/options")).json;
  const credential = key.create(own.options);
  assert.equal((await bob.post("/passkeys", { sealed: own.sealed, name: "x", credential })).code, "passkey_not_made");
  await owners.clock.advance(5 * MINUTE_MS);
  assert.equal((await alice.post("/passkeys", { sealed: own.sealed, name: "x", credential })).code, "passkey_not_made");
  assert.equal((await add(alice, key)).status, 201);
  const browser = owners.browser();
  const late = await asked(browser);
  const forAdding = (await alice.post("/passkeys/options")).json;
  const wrong = { sealed: forAdding.sealed, credential: key.get({ ...forAdding.options, rpId: HOST }) };
  assert.equal((await browser.post("/sign-in/passkey", wrong)).code, "passkey_refused");
  await owners.clock.advance(5 * MINUTE_MS);
  const tooLate = { sealed: late.sealed, credential: key.get(late.options) };
  assert.equal((await browser.post("/sign-in/passkey", tooLate)).code, "passkey_refused");
  const asking = await asked(browser);
  const changed = { sealed: bent(asking.sealed), credential: key.get(asking.options) };
  assert.equal((await browser.post("/sign-in/passkey", changed)).code, "passkey_refused");
});

test("a copy of a passkey is recognized by its counter", async (t) => {
  const owners = await startOwners(t);
  const alice = await enter(owners, "alice");
  const key = new Authenticator(ORIGIN);
  await add(alice, key, { counter: 5 });
  assert.equal((await signIn(owners.browser(), key, { counter: 6 })).status, 200);
  for (const counter of [6, 5, 0]) {
    assert.equal((await signIn(owners.browser(), key, { counter })).code, "passkey_refused", String(counter));
  }
  assert.equal((await signIn(owners.browser(), key, { counter: 7 })).status, 200);
});

test("a removed passkey signs nobody in, also if it is removed during the sign-in", async (t) => {
  const owners = await startOwners(t);
  const alice = await enter(owners, "alice");
  const key = new Authenticator(ORIGIN);
  await add(alice, key);
  const tag = (await owners.store.findAccount("alice"))?.tag ?? assert.fail();
  const [{ id }] = (await alice.get("/access")).json.passkeys;
  const store = owners.store as { -readonly [K in keyof typeof owners.store]: (typeof owners.store)[K] };
  const { keepSignIn } = store;
  store.keepSignIn = async (owner, record) => {
    if (record.kind === "passkey") await store.dropSignIn(tag, "passkey", id);
    return keepSignIn.call(store, owner, record);
  };
  assert.equal((await signIn(owners.browser(), key)).code, "passkey_refused");
  store.keepSignIn = keepSignIn;
  assert.deepEqual((await alice.get("/access")).json.passkeys, []);
  assert.equal((await signIn(owners.browser(), key)).code, "passkey_refused");
});

test("an account that is signed out meanwhile gets no new passkey, and a removed passkey starts no session", async (t) => {
  let amid: (record: NewSignIn) => Promise<unknown> = async () => {};
  const owners = await startOwners(t, {}, (real) =>
    overlay(real, {
      async keepSignIn(owner, record) {
        await amid(record);
        return real.keepSignIn(owner, record);
      },
    }),
  );
  const { store } = owners;
  const alice = await enter(owners, "alice");
  const [key, another] = [new Authenticator(ORIGIN), new Authenticator(ORIGIN)];
  await add(alice, key);
  const tag = (await store.findAccount("alice"))?.tag ?? assert.fail();
  const signedOutAt = (kind: string, only: string | undefined) => async (record: NewSignIn) => {
    if (record.kind === kind && record.only === only) await store.dropSignIns(tag, "link", "session", "passkey");
  };
  amid = signedOutAt("session", undefined);
  const browser = owners.browser();
  assert.equal((await signIn(browser, key)).code, "passkey_refused");
  assert.equal(await browser.account(), undefined);
  amid = async () => {};
  const again = await enter(owners, "alice");
  amid = signedOutAt("passkey", "new");
  assert.equal((await add(again, another)).code, "passkey_not_made");
  amid = async () => {};
  assert.deepEqual([...new Set((await store.listSignIns(tag)).map(({ kind }) => kind))], ["spent"]);
  assert.equal((await signIn(owners.browser(), another)).code, "passkey_refused");
});

test("under an IP address there are no passkeys", async (t) => {
  const owners = await startOwners(t, { publicUrl: undefined });
  const browser = owners.browser({ host: "192.0.2.9:8787", origin: "http://192.0.2.9:8787" });
  assert.equal((await browser.post("/sign-in/passkey/options")).code, "passkey_needs_name");
  const v6 = owners.browser({ host: "[2001:db8::9]:8787", origin: "http://[2001:db8::9]:8787" });
  assert.equal((await v6.post("/sign-in/passkey/options")).code, "passkey_needs_name");
  const token = await owners.link(await owners.account("alice"));
  assert.equal((await browser.post("/sign-in/link", { token })).status, 200);
  assert.equal((await browser.post("/passkeys/options")).code, "passkey_needs_name");
});

test("a known passkey cannot be added again, and its counter is kept", async (t) => {
  const owners = await startOwners(t);
  const alice = await enter(owners, "alice");
  const key = new Authenticator(ORIGIN);
  key.counter = 7;
  assert.equal((await add(alice, key)).status, 201);
  const [known] = (await alice.get("/access")).json.passkeys;
  await owners.clock.advance(MINUTE_MS);
  key.counter = 1;
  assert.equal((await add(alice, key)).code, "passkey_not_made");
  assert.deepEqual((await alice.get("/access")).json.passkeys, [known]);
  assert.equal(
    (await signIn(owners.browser(), key)).code,
    "passkey_refused",
    "the counter of a removed passkey is kept",
  );
});

test("an account has at most 32 passkeys", async (t) => {
  const owners = await startOwners(t);
  const alice = await enter(owners, "alice");
  for (let n = 0; n < 32; n++) {
    assert.equal((await add(alice, new Authenticator(ORIGIN))).status, 201);
    await owners.clock.advance(MINUTE_MS);
  }
  assert.equal((await add(alice, new Authenticator(ORIGIN))).code, "too_many_passkeys");
});

test("a challenge for adding is bound to one session and adds once, also if the added passkey was removed", async (t) => {
  const owners = await startOwners(t);
  const [alice, other] = [await enter(owners, "alice"), await enter(owners, "alice")];
  const key = new Authenticator(ORIGIN);
  const { options, sealed } = (await alice.post("/passkeys/options")).json;
  const answer = { sealed, name: "Laptop", credential: key.create(options) };
  assert.equal((await other.post("/passkeys", answer)).code, "passkey_not_made", "another session of the account");
  assert.equal((await alice.post("/passkeys", answer)).status, 201);
  const [{ id }] = (await alice.get("/access")).json.passkeys;
  assert.equal((await alice.post(`/passkeys/${id}/remove`)).status, 200);
  assert.equal((await alice.post("/passkeys", answer)).code, "passkey_not_made", "sent again");
  assert.deepEqual((await alice.get("/access")).json.passkeys, []);
});

test("of parallel sign-ins with the same counter one succeeds, and the counter never decreases", async (t) => {
  const owners = await startOwners(t);
  const alice = await enter(owners, "alice");
  const key = new Authenticator(ORIGIN);
  await add(alice, key, { counter: 5 });
  const at = (counters: readonly number[]) =>
    Promise.all(counters.map((counter) => signIn(owners.browser(), key, { counter })));
  const same = await at([6, 6, 6, 6]);
  assert.deepEqual(same.map(({ status }) => status).toSorted(), [200, 401, 401, 401]);
  await at([60, 20]);
  assert.equal((await signIn(owners.browser(), key, { counter: 21 })).code, "passkey_refused");
  // Renaming does not reset it.
  const { passkeys } = (await alice.get("/access")).json;
  const renamed = [1, 2, 3].map((n) => alice.ask("PUT", `/passkeys/${passkeys[0].id}/name`, { name: `Key ${n}` }));
  const [used] = await Promise.all([signIn(owners.browser(), key, { counter: 70 }), ...renamed]);
  assert.equal(used.status, 200);
  assert.equal((await signIn(owners.browser(), key, { counter: 70 })).code, "passkey_refused");
});

test("a counter that rises while its passkey is renamed is not reset", async (t) => {
  let meanwhile: () => Promise<unknown> = () => Promise.resolve();
  const owners = await startOwners(t, {}, (store) =>
    holding(store, "findSignIn", (_tag, kind) => (kind === "passkey" ? meanwhile() : Promise.resolve())),
  );
  const alice = await enter(owners, "alice");
  const key = new Authenticator(ORIGIN);
  await add(alice, key, { counter: 5 });
  const [{ id }] = (await alice.get("/access")).json.passkeys;
  meanwhile = async () => {
    meanwhile = () => Promise.resolve();
    assert.equal((await signIn(owners.browser(), key, { counter: 70 })).status, 200);
  };
  assert.equal((await alice.ask("PUT", `/passkeys/${id}/name`, { name: "Key" })).status, 200);
  assert.equal((await alice.get("/access")).json.passkeys[0].name, "Key");
  assert.equal((await signIn(owners.browser(), key, { counter: 70 })).code, "passkey_refused");
});

test("several sign-ins with a passkey without a counter succeed in parallel", async (t) => {
  const owners = await startOwners(t);
  const alice = await enter(owners, "alice");
  const key = new Authenticator(ORIGIN);
  await add(alice, key);
  const all = await Promise.all([1, 2, 3, 4].map(() => signIn(owners.browser(), key)));
  assert.deepEqual(
    all.map(({ status }) => status),
    [200, 200, 200, 200],
  );
});

test("unsigned members of a browser's answer break nothing", async (t) => {
  const owners = await startOwners(t);
  const alice = await enter(owners, "alice");
  for (const transports of ["internal", { length: 5 }, 7, null, [7, "usb", {}]]) {
    const key = new Authenticator(ORIGIN);
    const { options, sealed } = (await alice.post("/passkeys/options")).json;
    const credential = key.create(options) as { response: object };
    const said = { ...credential, response: { ...credential.response, transports } };
    const { status } = await alice.post("/passkeys", { sealed, name: "Key", credential: said });
    assert.equal(status, 201, JSON.stringify(transports));
  }
});

test("of a passkey's transports, which a browser can make up, the first eight words are kept", async (t) => {
  const owners = await startOwners(t);
  const alice = await enter(owners, "alice");
  const { options, sealed } = (await alice.post("/passkeys/options")).json;
  const credential = new Authenticator(ORIGIN).create(options) as { response: object };
  const transports = Array.from({ length: 20 }, (_, at) => `way-${String.fromCharCode(0x61 + at)}`);
  const made = ["no word", "USB", "x".repeat(21), ...transports];
  const said = { ...credential, response: { ...credential.response, transports: made } };
  assert.equal((await alice.post("/passkeys", { sealed, name: "Key", credential: said })).status, 201);
  const [known] = (await alice.post("/passkeys/options")).json.options.excludeCredentials;
  assert.deepEqual(known.transports, transports.slice(0, 8));
});

test("an attestation is not evaluated, and its certificates make the gateway send no request", async (t) => {
  const asked: (string | undefined)[] = [];
  const inside = createServer((request, response) => {
    asked.push(request.url);
    response.end();
  });
  inside.listen(0, "127.0.0.1");
  await once(inside, "listening");
  t.after(() => inside.close());
  const owners = await startOwners(t);
  const alice = await enter(owners, "alice");
  const revocations = `http://127.0.0.1:${(inside.address() as AddressInfo).port}/latest/meta-data`;
  const key = new Authenticator(ORIGIN);
  const added = await add(alice, key, { attest: (attested) => androidKey(attested, revocations) });
  assert.deepEqual(asked, []);
  // Some authenticators send one unrequested, and are accepted like others.
  assert.equal(added.status, 201, JSON.stringify(added.json));
  assert.equal((await signIn(owners.browser(), key)).status, 200);
});
