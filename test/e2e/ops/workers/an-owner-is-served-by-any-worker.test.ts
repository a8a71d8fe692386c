/**
 * The console of owners at a gateway of several processes: any worker knows a session, and the parent has the audit
 * lines.
 */
import assert from "node:assert/strict";
import test from "node:test";
import type { AuditPage } from "../../../../src/console/answers/answers.ts";
import type { Static } from "../../../../src/console/vocabulary.ts";
import { workersScene } from "./rig.ts";

const ADMIN = { authorization: "Bearer test-admin-token" };
/** A new connection each time: connections go to the workers in turn. */
const OWNER = { "x-tollgate-console": "1", "content-type": "application/json", connection: "close" };

test("what an owner does at either worker is in the operators' audit, each action once", async (t) => {
  const scene = await workersScene(t);
  const gateway = await scene.start(2);
  const { name } = scene.account;
  const invited = await fetch(`${gateway.adminUrl}/admin/v1/accounts/${name}/invitations`, {
    method: "POST",
    headers: ADMIN,
  });
  const { link } = (await invited.json()) as { readonly link: string };
  const entered = await fetch(`${gateway.url}/console/api/sign-in/link`, {
    method: "POST",
    headers: OWNER,
    body: JSON.stringify({ token: new URL(link).hash.slice(1) }),
  });
  assert.equal(entered.status, 200, await entered.text());
  const cookie = entered.headers.get("set-cookie")?.split(";")[0] ?? "";
  for (let n = 0; n < 4; n++) {
    const made = await fetch(`${gateway.url}/console/api/accounts/${name}/keys`, {
      method: "POST",
      headers: { ...OWNER, cookie },
      body: JSON.stringify({ group: "money", name: `Mine ${n}` }),
    });
    assert.equal(made.status, 201, await made.text());
  }
  // The last log line, and a worker's message to its parent, may still be on their way.
  await gateway.line('"who":"owner:', 5);
  const logged = gateway
    .output()
    .split("\n")
    .filter((line) => line.includes('"who":"owner:'))
    .map((line) => JSON.parse(line) as { readonly worker: number; readonly request: string });
  assert.deepEqual(
    new Set(logged.map(({ worker }) => worker)),
    new Set([1, 2]),
    "both workers have written audit lines",
  );
  for (;;) {
    const page = await fetch(`${gateway.adminUrl}/admin/v1/audit`, { headers: ADMIN });
    const { items } = (await page.json()) as Static<typeof AuditPage>;
    const noted = items.filter(({ who }) => who.startsWith("owner:"));
    if (noted.length < logged.length) continue;
    assert.deepEqual(noted.map(({ request_id }) => request_id).sort(), logged.map(({ request }) => request).sort());
    return;
  }
});
