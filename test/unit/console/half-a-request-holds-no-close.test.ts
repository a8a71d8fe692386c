/** docs/failure-model.md row D5, at the admin listener: Node ends its own check of slow senders when a server closes. */
import assert from "node:assert/strict";
import { once } from "node:events";
import test, { type TestContext } from "node:test";
import { type Clock, systemClock } from "../../../src/values/time.ts";
import { RawSocket } from "../../rig/raw-socket.ts";
import { startConsole } from "./running-console.ts";

/** After which `src/console/listener.ts` cuts. */
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
    // Answered: what was sent before it has been read.
    assert.equal((await console.ask("GET", "/healthz")).status, 200);
    const closed = console.close();
    (await armed)();
    await Promise.all([closed, client.closed]);
  });
}

for (const [name, path] of [
  ["a probe", "/metrics"],
  ["a question to the application", "/metrics?by=the-application"],
] as const) {
  // Node itself closes it, 10 seconds after the answer.
  test(`${name} that is answered while the listener closes holds its connection no longer`, {
    timeout: 8_000,
  }, async (t: TestContext) => {
    const page = Promise.withResolvers<{ contentType: string; body: string }>();
    const asked = Promise.withResolvers<void>();
    // Nobody is cut.
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
