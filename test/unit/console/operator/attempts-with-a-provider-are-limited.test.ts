/** Sign-ins of operators with a provider are limited by address, at their beginning and when the browser returns. */
import assert from "node:assert/strict";
import test, { type TestContext } from "node:test";
import { createSealing } from "../../../../src/request/sealing.ts";
import { Secret } from "../../../../src/values/secret.ts";
import { systemClock } from "../../../../src/values/time.ts";
import { startOidc } from "../../../rig/oidc.ts";
import { startConsole } from "../running-console.ts";

const PAGE = { "x-tollgate-console": "1", "sec-fetch-site": "same-origin" };

/** A console whose clock stands still, so that no limit is restored. */
async function start(t: TestContext) {
  const provider = await startOidc();
  t.after(() => provider.close());
  const { issuer, clientId } = provider;
  const oidc = { issuer, clientId, clientSecret: new Secret(provider.clientSecret), claim: "groups" };
  const pages = {
    sealer: createSealing([new Secret("a-sealing-key-for-tests-0123456789")]),
    sessionMs: 3_600_000,
    oidc: {
      oidc: { ...oidc, createAccounts: false, plan: undefined, label: undefined },
      allowed: ["ops"],
      publicUrl: undefined,
    },
  };
  const { url } = await startConsole(t, { pages, clock: { ...systemClock, monotonicMs: () => 0 } });
  provider.serve(`${url}/console/sign-in/oidc`);
  const ask = (method: string, path: string, headers: Record<string, string>) =>
    fetch(url + path, { method, headers: { ...headers, connection: "close" }, redirect: "manual" });
  return { begin: () => ask("POST", "/admin/v1/session/oidc", PAGE), ask };
}

test("an address may begin 60 visits to the provider a minute", async (t) => {
  const { begin } = await start(t);
  for (let n = 0; n < 60; n++) assert.equal((await begin()).status, 200, String(n));
  const stopped = await begin();
  assert.deepEqual([stopped.status, stopped.headers.get("retry-after")], [429, "1"]);
});

test("after ten answers that are not the provider's, an address has to wait", async (t) => {
  const { begin, ask } = await start(t);
  const [cookie = ""] = (await begin()).headers.getSetCookie().map((one) => one.slice(0, one.indexOf(";")));
  const refusal = async () => {
    const answer = await ask("GET", "/console/sign-in/oidc?code=made-up&state=made-up", { cookie });
    assert.equal(answer.status, 303);
    return answer.headers.get("location");
  };
  for (let n = 0; n < 10; n++) assert.equal(await refusal(), "/console/?refused=oidc_refused");
  assert.equal(await refusal(), "/console/?refused=too_many_attempts");
  assert.equal((await begin()).status, 429);
});
