/**
 * OpenID Connect with a real provider: the account that it names is signed in; a callback that is forged, replayed, of
 * another browser or late is not accepted.
 */
import assert from "node:assert/strict";
import test, { type TestContext } from "node:test";
import { nameIn } from "../../../../src/console/sign-in/claims.ts";
import { SPENT_MAX } from "../../../../src/store/sign-ins.ts";
import { Secret } from "../../../../src/values/secret.ts";
import type { OidcSettings } from "../../../../src/values/settings.ts";
import { type OidcOptions, startOidc } from "../../../rig/oidc.ts";
import { type Browser, ORIGIN, startOwners } from "./owners.ts";

const CALLBACK = "/console/sign-in/oidc";

async function start(t: TestContext, change: Partial<OidcSettings> = {}, options: OidcOptions = {}) {
  const oidc = await startOidc();
  t.after(() => oidc.close());
  oidc.serve(ORIGIN + CALLBACK, options);
  oidc.claims = { email: "alice@example.com", email_verified: true, preferred_username: "alice" };
  const settings: OidcSettings = {
    issuer: oidc.issuer,
    clientId: oidc.clientId,
    clientSecret: new Secret(oidc.clientSecret),
    claim: "preferred_username",
    createAccounts: false,
    plan: undefined,
    label: undefined,
    ...change,
  };
  return { oidc, owners: await startOwners(t, { oidc: settings }) };
}

/**
 * Visits the provider up to its last redirect.
 * @returns the path and query to which the browser is sent.
 */
async function visit(browser: Browser): Promise<string> {
  const begun = await browser.post("/sign-in/oidc");
  assert.equal(begun.status, 200, JSON.stringify(begun.json));
  const cookies = new Map<string, string>();
  let url = new URL(begun.json.location);
  while (url.origin !== ORIGIN) {
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join("; ");
    const answer = await fetch(url, { redirect: "manual", headers: { cookie, connection: "close" } });
    for (const one of answer.headers.getSetCookie()) {
      const [, name = "", value = ""] = /^([^=]+)=([^;]*)/.exec(one) ?? [];
      cookies.set(name, value);
    }
    url = new URL(answer.headers.get("location") ?? assert.fail(`${answer.status} ${await answer.text()}`), url);
  }
  return url.pathname + url.search;
}

/** Where the gateway sends the browser after the callback, which is a link from another site. */
async function comeBack(browser: Browser, path: string): Promise<string | undefined> {
  const answer = await browser.ask("GET", path, undefined, {
    "sec-fetch-site": "cross-site",
    "x-tollgate-console": "",
  });
  assert.equal(answer.status, 303);
  assert.equal(answer.headers["cache-control"], "no-store");
  return answer.headers.location;
}

async function signIn(browser: Browser): Promise<string | undefined> {
  return comeBack(browser, await visit(browser));
}

for (const inToken of [true, false]) {
  test(`the claim ${inToken ? "of the ID token" : "of the userinfo"} is the account's name`, async (t) => {
    const { owners } = await start(t, {}, { inToken });
    await owners.account("alice");
    const browser = owners.browser();
    assert.equal((await browser.get("/sign-in/ways")).json.oidc.startsWith("127.0.0.1:"), true);
    assert.equal(await signIn(browser), "/console/");
    assert.deepEqual(
      [(await browser.get("/session")).json.account, (await browser.get("/session")).json.way],
      ["alice", "oidc"],
    );
  });
}

test("a callback that is forged, of another browser, used or late signs nobody in", async (t) => {
  const { owners, oidc } = await start(t);
  await owners.account("alice");
  const browser = owners.browser();
  const path = await visit(browser);
  const over = "/console/sign-in?refused=oidc_over";
  const refused = "/console/sign-in?refused=oidc_refused";
  // An attacker's own callback in a victim's browser must not sign the victim in to the attacker's account.
  assert.equal(await comeBack(owners.browser(), path), over);
  const victim = owners.browser();
  await visit(victim);
  assert.equal(await comeBack(victim, path), refused, "another visit's state");
  const bent = (name: string, value: string) => {
    const url = new URL(path, ORIGIN);
    url.searchParams.set(name, value);
    return url.pathname + url.search;
  };
  for (const [name, value] of [
    ["state", "x"],
    ["iss", "https://evil.example"],
    ["code", "x"],
  ] as const) {
    const other = owners.browser();
    for (const [cookie, sealed] of browser.cookies) other.cookies.set(cookie, sealed);
    assert.equal(await comeBack(other, bent(name, value)), refused, name);
    assert.equal(await other.account(), undefined);
  }
  assert.equal(await comeBack(browser, CALLBACK), refused, "the provider sent no parameters");
  await owners.clock.advance(60_000);
  assert.equal(await comeBack(browser, path), "/console/");
  const again = owners.browser();
  for (const [cookie, sealed] of browser.cookies) if (cookie.includes("oidc")) again.cookies.set(cookie, sealed);
  assert.equal(await comeBack(again, path), refused, "the code was used before");
  const late = owners.browser();
  const latePath = await visit(late);
  await owners.clock.advance(600_000);
  assert.equal(await comeBack(late, latePath), over);
  oidc.refuses = true;
  assert.equal(await signIn(owners.browser()), refused);
  const reasons = owners.log.filter(({ event }) => event === "oidc_failed").map(({ reason }) => reason);
  assert.equal(reasons.at(-1), "access_denied");
  const all = JSON.stringify(owners.log);
  for (const secret of [oidc.clientSecret, new URL(path, ORIGIN).searchParams.get("code") ?? "none"]) {
    assert.ok(!all.includes(secret));
  }
});

test("a visit signs in once, even if the provider accepts a code again", async (t) => {
  const { owners, oidc } = await start(t);
  oidc.repeats = true;
  await owners.account("alice");
  const browser = owners.browser();
  const path = await visit(browser);
  const copy = owners.browser();
  for (const [cookie, sealed] of browser.cookies) copy.cookies.set(cookie, sealed);
  assert.equal(await comeBack(browser, path), "/console/");
  // It is remembered for as long as a visit lasts.
  await owners.clock.advance(400_000);
  assert.equal(await comeBack(copy, path), "/console/sign-in?refused=oidc_over");
  assert.equal(await copy.account(), undefined);
});

test("callbacks that other sites trigger in a browser block no sign-in", async (t) => {
  const { owners } = await start(t);
  await owners.account("alice");
  const browser = owners.browser();
  for (let n = 0; n < 70; n++) {
    // As in an image: without the cookie of a visit.
    assert.equal(await comeBack(browser, `${CALLBACK}?code=x&state=${n}`), "/console/sign-in?refused=oidc_over");
  }
  assert.deepEqual(owners.log, [], "a flood writes no audit lines");
  assert.equal(await signIn(browser), "/console/");
});

test("if the record of used sign-ins is full, the owner has to wait, and no address is blocked for it", async (t) => {
  const { owners } = await start(t);
  const tag = await owners.account("alice");
  for (let n = 0; n < SPENT_MAX; n++)
    await owners.store.keepSignIn(tag, { kind: "spent", id: `${n}`, data: "{}", lastsMs: 300_000 });
  // More often than an address may fail per minute.
  for (let n = 0; n < 11; n++)
    assert.equal(await signIn(owners.browser()), "/console/sign-in?refused=too_many_sign_ins");
  await owners.clock.advance(300_000);
  assert.equal(await signIn(owners.browser()), "/console/");
});

test("a name without an account is refused, or gets an account if that is configured", async (t) => {
  const { owners, oidc } = await start(t, { claim: "email" });
  assert.equal(await signIn(owners.browser()), "/console/sign-in?refused=oidc_no_account");
  assert.equal(await owners.store.findAccount("alice@example.com"), undefined);
  const [refused] = owners.log.filter(({ event }) => event === "audit");
  assert.deepEqual(
    [refused?.who, refused?.outcome, refused?.cause, refused?.target, refused?.way],
    ["nobody", "refused", "oidc_no_account", "alice@example.com", "oidc"],
  );
  const open = await start(t, { claim: "email", createAccounts: true, plan: "pro" });
  const browser = open.owners.browser();
  assert.equal(await signIn(browser), "/console/");
  assert.equal(await browser.account(), "alice@example.com");
  const made = await open.owners.store.findAccount("alice@example.com");
  assert.deepEqual([made?.plan, made?.balance], ["pro", 0n]);
  assert.equal(await signIn(open.owners.browser()), "/console/", "the same account again");
  assert.deepEqual(
    open.owners.log.filter(({ event }) => event === "audit").map(({ what, outcome, who }) => [what, outcome, who]),
    [
      ["account.create", "done", "oidc"],
      ["session.begin", "done", "owner:alice@example.com:oidc"],
      ["session.begin", "done", "owner:alice@example.com:oidc"],
    ],
  );
  open.oidc.claims = { email: "mallory@example.com", email_verified: false };
  assert.equal(await signIn(open.owners.browser()), "/console/sign-in?refused=email_unverified");
  assert.equal(await open.owners.store.findAccount("mallory@example.com"), undefined);
  oidc.claims = {};
  assert.equal(await signIn(owners.browser()), "/console/sign-in?refused=claim_missing");
  assert.deepEqual([owners.log.at(-1)?.cause, owners.log.at(-1)?.target], ["claim_missing", ""]);
});

test("an ID token signed by another key signs nobody in", async (t) => {
  const { owners, oidc } = await start(t, {}, { inToken: true });
  await owners.account("alice");
  oidc.forges = true;
  const browser = owners.browser();
  assert.equal(await signIn(browser), "/console/sign-in?refused=oidc_refused");
  assert.equal(await browser.account(), undefined);
  oidc.forges = false;
  assert.equal(await signIn(browser), "/console/");
});

test("a provider that accepts the gateway's secret only in the form gets it there", async (t) => {
  const { owners } = await start(t, {}, { auth: "client_secret_post" });
  await owners.account("alice");
  const browser = owners.browser();
  assert.equal(await comeBack(browser, await visit(browser)), "/console/");
});

test("if the ID token has the claim, userinfo is not requested", async (t) => {
  const { owners, oidc } = await start(t, {}, { inToken: true });
  for (const name of ["alice", "bob"]) await owners.account(name);
  oidc.userinfo = { preferred_username: "bob" };
  const browser = owners.browser();
  assert.equal(await signIn(browser), "/console/");
  assert.equal(await browser.account(), "alice");
});

test("the cookie of a visit is out of reach of scripts and of other sites' requests", async (t) => {
  const { owners } = await start(t);
  const { headers } = await owners.browser().post("/sign-in/oidc");
  assert.match(
    headers["set-cookie"] ?? "",
    /^__Host-tollgate-oidc=[^;]{40,}; Path=\/; Max-Age=600; HttpOnly; Secure; SameSite=Lax$/,
  );
});

test("an account created after its configured plan was removed gets the default plan", async (t) => {
  const { owners } = await start(t, { claim: "email", createAccounts: true, plan: "gone" });
  assert.equal(await signIn(owners.browser()), "/console/");
  assert.equal((await owners.store.findAccount("alice@example.com"))?.plan, "free");
});

test("an unreachable provider is reported, and the next sign-in tries again", async (t) => {
  const away = await startOidc();
  const { issuer } = away;
  await away.close();
  const { owners } = await start(t, { issuer });
  for (const _ of [1, 2]) assert.equal((await owners.browser().post("/sign-in/oidc")).code, "oidc_unreachable");
  const line = { event: "oidc_failed", kind: "unreachable", reason: "ECONNREFUSED", level: "warn" };
  assert.deepEqual(
    owners.log.filter(({ event }) => event === "oidc_failed"),
    [line, line],
  );
});

test("incomplete metadata of a provider is refused with the reason, and requested again", async (t) => {
  const { owners, oidc } = await start(t);
  await owners.account("alice");
  oidc.isHalf = true;
  for (const _ of [1, 2]) assert.equal((await owners.browser().post("/sign-in/oidc")).code, "oidc_refused");
  const [line] = owners.log.filter(({ event }) => event === "oidc_failed");
  assert.deepEqual([line?.reason, line?.level], ["OAUTH_MISSING_SERVER_METADATA", "info"]);
  oidc.isHalf = false;
  assert.equal(await signIn(owners.browser()), "/console/");
});

test("no callback makes the gateway request the provider's metadata again, unless the provider's own answer is invalid", async (t) => {
  const { owners, oidc } = await start(t);
  await owners.account("alice");
  const refused = "/console/sign-in?refused=oidc_refused";
  for (const [name, value] of [
    ["state", "x"],
    ["iss", "https://evil.example"],
    ["error", "access_denied"],
    ["code", "x"],
  ] as const) {
    const browser = owners.browser();
    const url = new URL(await visit(browser), ORIGIN);
    url.searchParams.set(name, value);
    assert.equal(await comeBack(browser, url.pathname + url.search), refused, name);
  }
  assert.equal(await comeBack(owners.browser(), CALLBACK), "/console/sign-in?refused=oidc_over");
  assert.equal(await signIn(owners.browser()), "/console/");
  assert.equal(oidc.discoveries, 1);
  oidc.forges = true;
  assert.equal(await signIn(owners.browser()), refused);
  oidc.forges = false;
  assert.equal(await signIn(owners.browser()), "/console/");
  assert.equal(oidc.discoveries, 2, "after an invalid answer the keys are fetched again");
});

for (const path of ["/.well-known/openid-configuration", "/token", "/jwks", "/me"]) {
  test(`of a provider's answer at ${path} no more is read than a limit`, async (t) => {
    const { owners, oidc } = await start(t);
    await owners.account("alice");
    oidc.pads = path;
    const browser = owners.browser();
    const isFirst = path.startsWith("/.well-known");
    const refused = isFirst ? (await browser.post("/sign-in/oidc")).code : await signIn(browser);
    assert.equal(refused, isFirst ? "oidc_refused" : "/console/sign-in?refused=oidc_refused");
    const [line] = owners.log.filter(({ event }) => event === "oidc_failed");
    assert.deepEqual([line?.reason, line?.level], ["answer_too_large", "info"]);
    oidc.pads = "";
    assert.equal(await signIn(owners.browser()), "/console/");
  });
}

test("a claim is a name exactly as it is, or none", () => {
  const claims = (value: unknown) => nameIn({ name: value }, "name");
  assert.deepEqual(claims("alice"), { name: "alice" });
  assert.deepEqual(claims("team-7@example.com"), { name: "team-7@example.com" });
  for (const wrong of [
    "",
    " alice",
    "alice\n",
    "a b",
    "älice",
    "../alice",
    "a".repeat(65),
    ["alice"],
    7,
    true,
    { a: 1 },
    "-a",
  ]) {
    assert.deepEqual(claims(wrong), { fault: "claim_no_name" }, JSON.stringify(wrong));
  }
  for (const none of [undefined, null]) assert.deepEqual(claims(none), { fault: "claim_missing" });
  assert.deepEqual(nameIn({}, "toString"), { fault: "claim_missing" });
  for (const email_verified of [undefined, false, "true", 1]) {
    assert.deepEqual(nameIn({ email: "a@b.example", email_verified }, "email"), { fault: "email_unverified" });
  }
});
