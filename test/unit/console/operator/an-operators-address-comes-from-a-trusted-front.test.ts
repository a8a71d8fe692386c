/**
 * Behind a front that `trust_proxy` names, the audit shows the operator's address; what other peers claim is ignored.
 */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test, { type TestContext } from "node:test";
import { CodeGuesses } from "../../../../src/console/guess-budget.ts";
import { adminListener } from "../../../../src/console/listener.ts";
import { askedFrom as addressOf } from "../../../../src/console/operator/asked-from.ts";
import { createSealing } from "../../../../src/request/sealing.ts";
import { Secret } from "../../../../src/values/secret.ts";
import { systemClock } from "../../../../src/values/time.ts";
import { refusingPort } from "../../../rig/refusing-port.ts";
import { ADMIN_TOKEN, CATALOG, startConsole } from "../running-console.ts";
import { openTestStore } from "../test-store.ts";

const SEALER = createSealing([new Secret("a-sealing-key-for-tests-0123456789")]);
const PAGES = { sealer: SEALER, sessionMs: 3_600_000 };
const OWN = { "x-tollgate-console": "1", "sec-fetch-site": "same-origin" };

async function askedFrom(t: TestContext, trustProxy: readonly string[] | undefined, forwarded?: string) {
  const { ask } = await startConsole(t, { pages: PAGES, ...(trustProxy && { trustProxy }) });
  const headers: Record<string, string> = forwarded === undefined ? {} : { "x-forwarded-for": forwarded };
  assert.equal((await ask("POST", "/admin/v1/accounts", { name: "alice" }, headers)).status, 201);
  const entered = await ask("POST", "/admin/v1/session", { token: ADMIN_TOKEN }, { ...OWN, ...headers });
  assert.equal(entered.status, 201, entered.text);
  const { items } = (await ask("GET", "/admin/v1/audit")).json as { items: { what: string; from: string }[] };
  return items.map(({ what, from }) => [what, from]);
}

const bothFrom = (from: string) => [
  ["operator.sign_in", from],
  ["account.create", from],
];

test("behind a trusted front the address is the visitor's, and what the visitor claims is ignored", async (t) => {
  const front = ["127.0.0.1/32"];
  assert.deepEqual(await askedFrom(t, front, "198.51.100.1, 203.0.113.9"), bothFrom("203.0.113.9"));
  assert.deepEqual(await askedFrom(t, front, `${"1.1.1.1, ".repeat(300)}203.0.113.9`), bothFrom("203.0.113.9"));
  assert.deepEqual(await askedFrom(t, front, "[2001:db8::7]:443"), bothFrom("2001:db8::7"));
});

test("without a trusted front, or without an address from it, the address is the peer's", async (t) => {
  assert.deepEqual(await askedFrom(t, undefined, "203.0.113.9"), bothFrom("127.0.0.1"));
  assert.deepEqual(await askedFrom(t, ["192.0.2.1/32", "unix"], "203.0.113.9"), bothFrom("127.0.0.1"));
  const front = ["127.0.0.1/32"];
  for (const none of [undefined, "", "nonsense"])
    assert.deepEqual(await askedFrom(t, front, none), bothFrom("127.0.0.1"), `${none}`);
});

test("over a unix socket that is not named as a front, a forwarded address is ignored", () => {
  const request = { socket: { remoteAddress: undefined }, headers: { "x-forwarded-for": "203.0.113.9" } } as never;
  for (const trustProxy of [[], ["127.0.0.1/32"]]) assert.equal(addressOf(trustProxy)(request), "unix");
  assert.equal(addressOf(["unix"])(request), "203.0.113.9");
});

test("over a unix socket a front is trusted under that name, and a visit to a provider begins without an address", async (t) => {
  const dir = mkdtempSync(join(tmpdir(), "tollgate-admin-"));
  t.after(() => rmSync(dir, { recursive: true }));
  const socketPath = join(dir, "admin.sock");
  const issuer = `http://127.0.0.1:${await refusingPort(t)}`;
  const oidc = {
    oidc: {
      ...{ issuer, clientId: "a", clientSecret: new Secret("b"), claim: "groups", createAccounts: false },
      ...{ plan: undefined, label: undefined },
    },
    allowed: ["ops"],
    publicUrl: undefined,
  };
  const listener = adminListener({
    store: await openTestStore(t),
    catalog: () => CATALOG,
    adminToken: new Secret(ADMIN_TOKEN),
    random: randomBytes,
    codeGuesses: new CodeGuesses(systemClock),
    metrics: async () => ({ contentType: "text/plain", body: "" }),
    readiness: () => ({ ready: true, reasons: [], notes: [] }),
    clock: systemClock,
    log: () => {},
    pages: { ...PAGES, oidc },
    trustProxy: ["unix"],
  });
  t.after(() => listener.close());
  await listener.listen({ kind: "unix", path: socketPath });
  const ask = (method: string, path: string, headers: Record<string, string>, body?: object) =>
    new Promise<{ status: number | undefined; text: string }>((resolve, reject) => {
      const all = { host: "admin.example", ...(body && { "content-type": "application/json" }), ...headers };
      const asked = request({ socketPath, method, path, headers: all }, async (response) => {
        const parts: Buffer[] = [];
        for await (const part of response) parts.push(part as Buffer);
        resolve({ status: response.statusCode, text: Buffer.concat(parts).toString() });
      });
      asked.on("error", reject).end(body && JSON.stringify(body));
    });
  const authorization = `Bearer ${ADMIN_TOKEN}`;
  for (const [name, forwarded] of [
    ["a", { "x-forwarded-for": "203.0.113.9" }],
    ["b", {}],
  ] as const) {
    const headers = { authorization, ...forwarded } as Record<string, string>;
    assert.equal((await ask("POST", "/admin/v1/accounts", headers, { name })).status, 201);
  }
  const { items } = JSON.parse((await ask("GET", "/admin/v1/audit", { authorization })).text);
  assert.deepEqual(
    items.map(({ from }: { from: string }) => from),
    ["unix", "203.0.113.9"],
  );
  const begun = await ask("POST", "/admin/v1/session/oidc", OWN);
  assert.deepEqual([begun.status, JSON.parse(begun.text).error.code], [503, "oidc_unreachable"]);
});
