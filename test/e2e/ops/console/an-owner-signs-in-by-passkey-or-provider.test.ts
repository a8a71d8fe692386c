/** Passkeys in a real Chromium with a virtual authenticator, and a real provider of OpenID Connect. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test, { after, type TestContext } from "node:test";
import { closeBrowser, openWindow, type Page, picture } from "../../../rig/browser.ts";
import type { Changes } from "../../../rig/config.ts";
import { type GatewayHere, startGatewayHere, testConfig } from "../../../rig/gateway.ts";
import { startOidc } from "../../../rig/oidc.ts";
import { settledPage } from "./owner/owner-pages.ts";

after(closeBrowser);

const AXE = readFileSync(new URL("../../../../node_modules/axe-core/axe.min.js", import.meta.url), "utf8");

async function start(t: TestContext, change: Changes = {}): Promise<GatewayHere> {
  const gateway = await startGatewayHere({ config: (places) => testConfig(places, change) });
  t.after(() => gateway.close());
  return gateway;
}

/** Passkeys need a host name; localhost works on every machine. */
const named = (url: string) => url.replace("127.0.0.1", "localhost");

async function ask(gateway: GatewayHere, method: string, path: string, body?: object) {
  const response = await fetch(`${gateway.adminUrl}/admin/v1${path}`, {
    method,
    headers: { authorization: `Bearer ${gateway.gateway.adminToken}`, "content-type": "application/json" },
    ...(body && { body: JSON.stringify(body) }),
  });
  // biome-ignore lint/suspicious/noExplicitAny: answers of several forms, looked into.
  return (await response.json()) as any;
}

async function enterByLink(gateway: GatewayHere, page: Page, name: string): Promise<void> {
  const { link } = await ask(gateway, "POST", `/accounts/${name}/invitations`);
  await page.goto(named(link));
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("heading", { name: "Overview" }).waitFor();
}

async function addAuthenticator(page: Page) {
  const session = await page.context().newCDPSession(page);
  await session.send("WebAuthn.enable");
  const { authenticatorId } = await session.send("WebAuthn.addVirtualAuthenticator", {
    options: {
      protocol: "ctap2",
      transport: "internal",
      hasResidentKey: true,
      hasUserVerification: true,
      isUserVerified: true,
    },
  });
  return { session, authenticatorId };
}

test("a passkey is added, used to sign in, renamed and removed; then it no longer works", async (t) => {
  const gateway = await start(t);
  const { name } = await gateway.account({ usd: "12.5" });
  const { page, complaints } = await openWindow(t);
  await addAuthenticator(page);
  await enterByLink(gateway, page, name);
  await page.getByRole("link", { name: "Access" }).click();
  await page.getByText("No passkey yet").waitFor();
  await page.getByRole("button", { name: "Add a passkey" }).click();
  const hostile = '<img src=x onerror="alert(1)"> ضوء 🔑';
  await page.getByRole("textbox", { name: "Name" }).fill(hostile);
  await page.getByRole("button", { name: "Continue" }).click();
  await page.getByRole("button", { name: `Rename ${hostile}` }).waitFor();
  await picture(page, "owner-access");
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.getByText("You are not signed in.").waitFor();
  await picture(page, "owner-sign-in");
  await page.getByRole("button", { name: "Sign in with a passkey" }).click();
  await page.getByRole("heading", { name: "Access" }).waitFor();
  await page.getByText("this session").waitFor();

  await page.getByRole("button", { name: `Rename ${hostile}` }).click();
  await page.getByRole("textbox", { name: "Name" }).fill("Laptop");
  await page.getByRole("button", { name: "Rename", exact: true }).click();
  await page.getByRole("button", { name: "Remove Laptop" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Remove", exact: true }).click();
  await page.getByText("No passkey yet").waitFor();
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.getByRole("button", { name: "Sign in with a passkey" }).click();
  await page.getByText("This passkey was not accepted").waitFor();

  const { items } = await ask(gateway, "GET", "/audit");
  const done = (items as { what: string; outcome: string; who: string; target: string }[])
    .filter(({ what }) => /^(session|passkey)\./.test(what))
    .map(({ what, outcome, who, target }) => `${what} ${outcome} ${who} ${target}`);
  assert.deepEqual(done, [
    "session.begin refused nobody ",
    `session.end done owner:${name}:passkey ${name}`,
    `passkey.remove done owner:${name}:passkey ${name}`,
    `passkey.rename done owner:${name}:passkey ${name}`,
    `session.begin done owner:${name}:passkey ${name}`,
    `session.end done owner:${name}:link ${name}`,
    `passkey.add done owner:${name}:link ${name}`,
    `session.begin done owner:${name}:link ${name}`,
  ]);
  assert.deepEqual(complaints, []);
});

for (const [language, dark, width] of [
  ["en", false, 2000],
  ["zh-CN", true, 360],
] as const) {
  test(`axe finds nothing serious on the sign-in page and the access page: ${language}, ${dark ? "dark" : "light"}, ${width} px`, async (t) => {
    const gateway = await start(t);
    const { name, tag } = await gateway.account();
    const { page, complaints } = await openWindow(t, { language, dark, width });
    const { link } = await ask(gateway, "POST", `/accounts/${name}/invitations`);
    const look = async (what: string) => {
      await page.evaluate(AXE);
      const found = await page.evaluate("axe.run().then(({ violations }) => violations)");
      const serious = (found as { impact: string; id: string }[]).filter(({ impact }) =>
        /serious|critical/.test(impact),
      );
      assert.deepEqual(serious, [], what);
      const wide = await page.evaluate("document.documentElement.scrollWidth - innerWidth");
      assert.ok(Number(wide) <= 0, `${what} is ${wide} px too wide`);
      await picture(page, `owner-${what}-${language}-${dark ? "dark" : "light"}-${width}`);
    };
    await page.goto(named(`${gateway.url}/console/`));
    await page.locator(".sign-in-methods button").waitFor();
    await look("sign-in");
    await page.goto(named(link));
    await page.reload();
    await page.locator("button.main").click();
    await page.locator(".shell").waitFor();
    const agent = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0";
    const kept = (from: string) => JSON.stringify({ way: "passkey", from, agent });
    for (const from of ["2001:db8:ffff:ffff:ffff:ffff:ffff:ffff", "unix"])
      await gateway.store.keepSignIn(tag, { kind: "session", id: from.replaceAll(":", "-"), data: kept(from) });
    const passkey = { credential: "c", key: "k", counter: 0, transports: [], synced: true, addedAtMs: 0 };
    const data = JSON.stringify({ ...passkey, name: "Ω".repeat(64) });
    await gateway.store.keepSignIn(tag, { kind: "passkey", id: "b", data });
    await page.goto(named(`${gateway.url}/console/access`));
    await page.getByText("Firefox 140").first().waitFor();
    await look("access");
    assert.deepEqual(complaints, []);
  });
}

test("one session ends another, and the operator ends all", async (t) => {
  const gateway = await start(t);
  const { name } = await gateway.account();
  const [one, other] = [await openWindow(t), await openWindow(t)];
  await enterByLink(gateway, one.page, name);
  await enterByLink(gateway, other.page, name);
  // What its overview still has to ask for would find the session ended before the next step of the owner.
  await settledPage(other.page);
  await one.page.getByRole("link", { name: "Access" }).click();
  // A button has another label while its request runs, so a missing label does not mean that the request is done.
  const ended = one.page.waitForResponse(/\/sessions\/end-others$/);
  await one.page.getByRole("button", { name: "End all others" }).click();
  assert.ok((await ended).ok());
  await one.page.getByRole("button", { name: /^End / }).nth(1).waitFor({ state: "detached" });
  await other.page.getByRole("link", { name: "Access" }).click();
  await other.page.getByText("Your session has ended.").waitFor();
  assert.equal((await ask(gateway, "POST", `/accounts/${name}/sign-out`, {})).sessions, 1);
  await one.page.reload();
  await one.page.getByText("You are not signed in.").waitFor();
  assert.deepEqual([...one.complaints, ...other.complaints], []);
});

test("a provider signs in the users that it names, and the page says why others are refused", async (t) => {
  const oidc = await startOidc();
  t.after(() => oidc.close());
  const { issuer, clientId: client_id, clientSecret: client_secret } = oidc;
  const console = { oidc: { issuer, client_id, client_secret, claim: "email", label: "Example login" } };
  const gateway = await start(t, { console });
  // The provider is another site, as in reality: the browser decides which cookies are sent.
  const url = named(gateway.url);
  oidc.serve(`${url}/console/sign-in/oidc`);
  await gateway.store.createAccount({ tag: "Oidc000001" as never, name: "alice@example.com", plan: "free" });
  const { page, complaints } = await openWindow(t);
  oidc.claims = { email: "alice@example.com", email_verified: false };
  await page.goto(`${url}/console/`);
  await page.getByRole("button", { name: "Sign in with Example login" }).click();
  await page.getByText("has not verified your email address").waitFor();
  oidc.claims = { email: "nobody@example.com", email_verified: true };
  await page.getByRole("button", { name: "Sign in with Example login" }).click();
  await page.getByText("There is no account with the name").waitFor();
  await picture(page, "owner-sign-in-refused");
  oidc.claims = { email: "alice@example.com", email_verified: true };
  await page.getByRole("button", { name: "Sign in with Example login" }).click();
  await page.getByRole("heading", { name: "Overview" }).waitFor();
  await page.getByText("alice@example.com").waitFor();
  await page.getByRole("link", { name: "Access" }).click();
  await page.getByText(/^No passkey yet\. .* another sign-in method of the sign-in page\.$/).waitFor();
  await gateway.store.changeAccount("Oidc000001" as never, { status: "suspended" });
  await page.reload();
  await page.getByText("Your account is suspended. Until your operator resumes it, you can see").waitFor();
  assert.deepEqual(complaints, []);
});
