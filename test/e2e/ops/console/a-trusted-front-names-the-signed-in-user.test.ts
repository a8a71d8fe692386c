/** The user name that a front sends, through a real listener: from a trusted address and from an untrusted one. */
import assert from "node:assert/strict";
import { request } from "node:http";
import test, { type TestContext } from "node:test";
import { type GatewayHere, startGatewayHere, testConfig } from "../../../rig/gateway.ts";

async function start(t: TestContext, trust_proxy: readonly string[]): Promise<GatewayHere> {
  const console = { trusted_header: "X-Forwarded-User" };
  const gateway = await startGatewayHere({ config: (places) => testConfig(places, { trust_proxy, console }) });
  t.after(() => gateway.close());
  return gateway;
}

/** Signs in as a front on this machine would, with the headers as they are on the wire. */
function signIn(
  gateway: GatewayHere,
  users: readonly string[],
): Promise<{ status: number; text: string; cookie: string }> {
  const headers = [
    "host",
    `127.0.0.1:${gateway.port}`,
    "x-tollgate-console",
    "1",
    "connection",
    "close",
    "content-length",
    "0",
  ];
  for (const user of users) headers.push("X-Forwarded-User", user);
  return new Promise((resolve, reject) => {
    const asked = request(`${gateway.url}/console/api/sign-in/front`, { method: "POST", headers }, async (answer) => {
      const text = Buffer.concat(await answer.toArray()).toString();
      resolve({ status: answer.statusCode ?? 0, text, cookie: String(answer.headers["set-cookie"] ?? "") });
    });
    asked.on("error", reject).end();
  });
}

test("a visitor named by a trusted front is signed in; one who adds the header a second time is not", async (t) => {
  const gateway = await start(t, ["127.0.0.1/32"]);
  const [{ name }, other] = [await gateway.account(), await gateway.account()];
  const entered = await signIn(gateway, [name]);
  assert.equal(entered.status, 200, entered.text);
  assert.match(entered.cookie, /^__Host-tollgate-owner=[^;]+; Path=\/; Max-Age=\d+; HttpOnly; Secure; SameSite=Lax$/);
  for (const users of [[], [name, other.name], [name, name], ["nobody"]]) {
    const refused = await signIn(gateway, users);
    assert.deepEqual([refused.status, refused.cookie], [401, ""], users.join());
    assert.match(refused.text, /front_names_nobody/);
  }
});

test("from an untrusted address the header has no effect", async (t) => {
  const gateway = await start(t, ["192.0.2.0/24"]);
  const { name } = await gateway.account();
  const refused = await signIn(gateway, [name]);
  assert.deepEqual([refused.status, refused.cookie], [401, ""]);
});
