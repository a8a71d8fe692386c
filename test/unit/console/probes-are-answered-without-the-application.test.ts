/** The listener answers the requests of monitoring itself; the application is loaded for the first other request. */
import assert from "node:assert/strict";
import { lookup } from "node:dns/promises";
import test from "node:test";
import { Secret } from "../../../src/values/secret.ts";
import { RawSocket } from "../../rig/raw-socket.ts";
import { ADMIN_TOKEN, startConsole } from "./running-console.ts";

const NO_TOKEN = { authorization: "" };
const FOREIGN = { ...NO_TOKEN, "x-forwarded-for": "203.0.113.7" };
const WRONG = { ...FOREIGN, authorization: `Bearer ${ADMIN_TOKEN}x` };

test("all requests that arrive while the application is being loaded are answered", async (t) => {
  const { ask } = await startConsole(t);
  const first = await Promise.all(Array.from({ length: 8 }, () => ask("GET", "/admin/v1/accounts")));
  assert.deepEqual(
    first.map(({ status }) => status),
    first.map(() => 200),
  );
});

test("listener and application give the same answer to a probe", async (t) => {
  let isReady = true;
  const { ask, log } = await startConsole(t, {
    readiness: () => ({ ready: isReady, reasons: isReady ? [] : ["draining"], notes: [] }),
    metrics: async (accept) => {
      if (accept === "text/broken") throw new Error("no page from https://user:pass@host/");
      return { contentType: "text/plain; version=0.0.4", body: `up 1 ${accept}\n` };
    },
  });
  let seen = 0;
  const answered = async (path: string, headers: Record<string, string>) => {
    const { status, text, headers: all } = await ask("GET", path, undefined, headers);
    const { "x-request-id": id, date, ...others } = Object.fromEntries(all);
    assert.match(id ?? "", /^\S+$/);
    const logged = log
      .slice(seen)
      .map(({ event, method, route, stack }) => [event, method, route, String(stack).split("\n")[0]]);
    seen = log.length;
    return {
      status,
      text,
      headers: others,
      logged,
    };
  };
  const statuses: number[] = [];
  for (const [path, headers] of [
    ["/healthz", NO_TOKEN],
    ["/readyz", NO_TOKEN],
    ["/metrics", { ...NO_TOKEN, accept: "text/plain" }],
    ["/metrics", { ...NO_TOKEN, accept: "text/broken" }],
    ["/metrics", FOREIGN],
    ["/metrics", WRONG],
  ] as const) {
    for (isReady of path === "/readyz" ? [true, false] : [true]) {
      // With a query, the listener passes it on to the application.
      const own = await answered(path, headers);
      assert.deepEqual(await answered(`${path}?by=the-application`, headers), own, path);
      assert.doesNotMatch(JSON.stringify(own), /pass@/);
      statuses.push(own.status);
    }
  }
  assert.deepEqual(statuses, [200, 200, 503, 200, 500, 401, 401]);
});

test("a wrong token counts once, whether the listener or the application answers", async (t) => {
  const refused: string[] = [];
  const { ask } = await startConsole(t, {
    adminToken: new Secret(ADMIN_TOKEN),
    onAccessRefused: (reason) => refused.push(reason),
  });
  for (let i = 0; i < 10; i++) {
    for (const path of ["/metrics", "/metrics?by=the-application"]) await ask("GET", path, undefined, WRONG);
  }
  assert.deepEqual(new Set(refused), new Set(["wrong_token"]));
  const last = await Promise.all(["/metrics", "/admin/v1/accounts"].map((path) => ask("GET", path, undefined, WRONG)));
  assert.deepEqual(
    last.map(({ status }) => status),
    [429, 429],
  );
});

test("a refused probe whose body is still to come closes its connection", async (t) => {
  const { url } = await startConsole(t);
  const head = ["GET /metrics HTTP/1.1", "Host: evil.example", "Content-Length: 1000000000"];
  const client = new RawSocket({ port: Number(new URL(url).port) }).send(`${head.join("\r\n")}\r\n\r\n`);
  const [response] = await client.responsesUntilClosed();
  assert.deepEqual([response?.status, response?.headers.connection], [401, "close"]);
});

test("the listener of localhost listens at all of its addresses, and closes all of them", async (t) => {
  const console = await startConsole(t, {}, "localhost");
  const { port } = new URL(console.url);
  const addresses = await lookup("localhost", { all: true });
  for (const { address, family } of addresses) {
    const host = family === 6 ? `[${address}]` : address;
    assert.equal((await fetch(`http://${host}:${port}/healthz`)).status, 200, host);
  }
  await console.close();
  for (const { address, family } of addresses) {
    const host = family === 6 ? `[${address}]` : address;
    await assert.rejects(fetch(`http://${host}:${port}/healthz`), host);
  }
});
