/**
 * Operators sign in by a real provider of OpenID Connect: only users whom a claim names are admitted, and an answer of
 * the provider works once.
 */
import assert from "node:assert/strict";
import test, { after, type TestContext } from "node:test";
import { closeBrowser, openWindow } from "../../../../rig/browser.ts";
import { startGatewayHere, testConfig } from "../../../../rig/gateway.ts";
import { startOidc } from "../../../../rig/oidc.ts";

after(closeBrowser);

async function start(t: TestContext) {
  const provider = await startOidc();
  t.after(() => provider.close());
  const { issuer, clientId, clientSecret } = provider;
  const oidc = {
    ...{ issuer, client_id: clientId, client_secret: clientSecret },
    ...{ claim: "groups", allowed: ["gateway-admins"], label: "Example login" },
  };
  const config = (places: Parameters<typeof testConfig>[0]) => testConfig(places, { console: { operator: { oidc } } });
  const here = await startGatewayHere({ config });
  t.after(() => here.close());
  provider.serve(`${here.adminUrl}/console/sign-in/oidc`);
  const admin = async (method: string, path: string) => {
    const authorization = `Bearer ${here.gateway.adminToken}`;
    const response = await fetch(`${here.adminUrl}/admin/v1${path}`, { method, headers: { authorization } });
    return (await response.json()) as { readonly items: readonly Record<string, unknown>[] };
  };
  return { provider, here, admin };
}

test("a user whom the claim names is signed in, and the audit says who it was", async (t) => {
  const { provider, here, admin } = await start(t);
  provider.claims = { groups: ["staff", "gateway-admins"] };
  provider.repeats = true;
  const { page, complaints } = await openWindow(t);
  let back = "";
  page.on("request", (request) => {
    if (request.url().includes("/sign-in/oidc?")) back = request.url();
  });
  await page.goto(`${here.adminUrl}/console/`);
  await page.getByRole("button", { name: "Sign in with Example login" }).click();
  await page.getByRole("heading", { name: "Overview" }).waitFor();
  const made = await page.evaluate(async () => {
    const headers = { "x-tollgate-console": "1", "content-type": "application/json" };
    const response = await fetch("/admin/v1/accounts", { method: "POST", headers, body: '{"name":"alice"}' });
    return response.status;
  });
  assert.equal(made, 201);
  const { items } = await admin("GET", "/audit");
  const [create, enter] = items;
  assert.deepEqual([create?.what, enter?.what], ["account.create", "operator.sign_in"]);
  assert.match(String(create?.who), /^operator:oidc:[\w-]{8}$/);
  assert.deepEqual(enter?.facts, { person: "person-1", session: create?.who });
  // Sends the same answer of the provider again, with the browser's cookies of that sign-in.
  await page.goto(back);
  await page.getByRole("heading", { name: "Overview" }).waitFor();
  const visits = (await admin("GET", "/audit")).items.filter(({ what }) => what === "operator.sign_in");
  assert.deepEqual(
    visits.map(({ who, outcome, cause }) => [who, outcome, cause]),
    [
      ["nobody", "refused", "oidc_over"],
      ["operator:session", "done", null],
    ],
  );
  const stranger = await fetch(back, { redirect: "manual" });
  assert.deepEqual([stranger.status, stranger.headers.get("location")], [303, "/console/?refused=oidc_over"]);
  assert.equal(stranger.headers.get("set-cookie"), null);
  assert.deepEqual(complaints, []);
});

test("a user whom the claim does not name is refused, whatever other claims say, and the audit says who it was", async (t) => {
  const { provider, here, admin } = await start(t);
  const { page, context, complaints } = await openWindow(t);
  for (const claims of [
    {},
    { groups: ["staff"] },
    { groups: "gateway-admins2" },
    { groups: { "gateway-admins": true } },
  ]) {
    provider.claims = claims;
    await page.goto(`${here.adminUrl}/console/`);
    await page.getByRole("button", { name: "Sign in with Example login" }).click();
    await page.getByText(/According to the provider, you are not one of the operators|Sign-in failed/).waitFor();
    const names = (await context.cookies(here.adminUrl)).map(({ name }) => name);
    assert.ok(!names.includes("__Host-tollgate-operator"), JSON.stringify(claims));
  }
  const lines = (await admin("GET", "/audit")).items;
  assert.deepEqual(
    lines.map(({ who, what, outcome, cause, target, facts }) => ({ who, what, outcome, cause, target, facts })),
    Array(4).fill({
      ...{ who: "nobody", what: "operator.sign_in", outcome: "refused", cause: lines[0]?.cause, target: "console" },
      facts: { way: "oidc", person: "person-1" },
    }),
  );
  assert.equal(lines[0]?.cause, "oidc_not_operator");
  assert.deepEqual(complaints, []);
});

test("another site's page cannot start a sign-in", async (t) => {
  const { here } = await start(t);
  const headers = { "x-tollgate-console": "1", origin: "https://evil.example", "sec-fetch-site": "cross-site" };
  const response = await fetch(`${here.adminUrl}/admin/v1/session/oidc`, { method: "POST", headers });
  assert.equal(response.status, 403);
});
