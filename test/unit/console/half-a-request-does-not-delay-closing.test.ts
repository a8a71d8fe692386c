/**
 * docs/failure-model.md row D5, at the admin listener: Node stops its own check of slow senders when a server closes.
 */
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import test, { type TestContext } from "node:test";
import { type Clock, systemClock } from "../../../src/values/time.ts";
import { RawSocket } from "../../rig/raw-socket.ts";
import { startConsole } from "./running-console.ts";

/** The time after which `src/console/servers.ts` cuts. */
const CLOSE_GRACE_MS = 5_000;

for (const [name, half] of [
  ["half a head", "GET /healthz HTTP/1.1\r\nhost: x\r\n"],
  ["half a body", "POST /admin/v1/session HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100\r\n\r\n{"],
] as const) {
  test(`${name} without a token is cut a few seconds after the listener begins to close`, async (t: TestContext) => {
    const { promise: armed, resolve: arm } = Promise.withResolvers<() => void>();
    const after: Clock["after"] = (ms, task) => {
      if (ms !== CLOSE_GRACE_MS) return systemClock.after(ms, task);
      arm(task);
      return () => {};
    };
    const console = await startConsole(t, { clock: { ...systemClock, after } });
    const client = new RawSocket({ port: Number(new URL(console.url).port) });
    t.after(() => client.close());
    await once(client.socket, "connect");
    client.send(half);
    // Once this is answered, what was sent before has been read.
    assert.equal((await console.ask("GET", "/healthz")).status, 200);
    const closed = console.close();
    (await armed)();
    await Promise.all([closed, client.closed]);
  });
}

for (const [name, path] of [
  ["a probe", "/metrics"],
  ["a request to the application", "/metrics?by=the-application"],
] as const) {
  // Node itself would close it 10 seconds after the answer.
  test(`${name} that is answered while the listener closes keeps its connection open no longer`, {
    timeout: 8_000,
  }, async (t: TestContext) => {
    const page = Promise.withResolvers<{ contentType: string; body: string }>();
    const asked = Promise.withResolvers<void>();
    // The grace period never ends.
    const after: Clock["after"] = (ms, task) => (ms === CLOSE_GRACE_MS ? () => {} : systemClock.after(ms, task));
    const console = await startConsole(t, {
      clock: { ...systemClock, after },
      metrics() {
        asked.resolve();
        return page.promise;
      },
    });
    const client = new RawSocket({ port: Number(new URL(console.url).port) });
    client.send(`GET ${path} HTTP/1.1\r\nhost: localhost\r\n\r\n`);
    await asked.promise;
    const closed = console.close();
    page.resolve({ contentType: "text/plain", body: "up 1\n" });
    const [response] = await client.responsesUntilClosed();
    assert.deepEqual([response?.status, response?.body, response?.complete], [200, "up 1\n", true]);
    await closed;
  });
}

// Node itself would close it 10 seconds after the answer.
test("a kept idle connection is closed at once when the listener closes", {
  timeout: 8_000,
}, async (t) => {
  const after: Clock["after"] = (ms, task) => (ms === CLOSE_GRACE_MS ? () => {} : systemClock.after(ms, task));
  const console = await startConsole(t, { clock: { ...systemClock, after } });
  const client = new RawSocket({ port: Number(new URL(console.url).port) });
  client.send("GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n");
  assert.equal((await client.next())?.status, 200);
  // The listener, too, has finished the first answer by the time it has read this request.
  assert.equal((await console.ask("GET", "/healthz")).status, 200);
  await Promise.all([console.close(), client.closed]);
});

test("an answer that its client still reads is not cut when another one ends", async (t) => {
  const large = "x".repeat(32 * 1024 * 1024);
  const pages = new Map(["large", "small"].map((name) => [name, Promise.withResolvers<string>()]));
  const bothAsked = Promise.withResolvers<void>();
  let asked = 0;
  const after: Clock["after"] = (ms, task) => (ms === CLOSE_GRACE_MS ? () => {} : systemClock.after(ms, task));
  const console = await startConsole(t, {
    clock: { ...systemClock, after },
    async metrics(accept = "") {
      if (++asked === pages.size) bothAsked.resolve();
      return { contentType: "text/plain", body: (await pages.get(accept)?.promise) ?? "" };
    },
  });
  const port = Number(new URL(console.url).port);
  const request = (accept: string) => `GET /metrics HTTP/1.1\r\nhost: localhost\r\naccept: ${accept}\r\n\r\n`;
  const slow = connect(port, "127.0.0.1");
  slow.write(request("large"));
  const other = new RawSocket({ port }).send(request("small"));
  await bothAsked.promise;
  const closed = console.close();
  pages.get("large")?.resolve(large);
  pages.get("small")?.resolve("up 1\n");
  assert.equal((await other.responsesUntilClosed())[0]?.complete, true);
  let bytes = 0;
  for await (const piece of slow) bytes += (piece as Buffer).length;
  assert.ok(bytes > large.length, `${bytes} bytes`);
  await closed;
});

test("a request during the close gets a 503, and the application is not loaded for it", async (t) => {
  const after: Clock["after"] = (ms, task) => (ms === CLOSE_GRACE_MS ? () => {} : systemClock.after(ms, task));
  const console = await startConsole(t, { clock: { ...systemClock, after } });
  const client = new RawSocket({ port: Number(new URL(console.url).port) });
  client.send("GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n");
  assert.equal((await client.next())?.status, 200);
  // Half a head keeps the connection open.
  client.send("GET /admin/v1/accounts HTTP/1.1\r\nhost: localhost\r\n");
  assert.equal((await console.ask("GET", "/healthz")).status, 200);
  const closed = console.close();
  client.send("\r\n");
  const [response] = await client.responsesUntilClosed();
  assert.deepEqual([response?.status, response?.headers.connection], [503, "close"]);
  assert.match(response?.headers["x-request-id"] ?? "", /^\S+$/);
  await closed;
});
