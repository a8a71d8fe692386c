/** Two Host headers may be read in two ways by two servers, so the admin listener refuses such a request. */
import assert from "node:assert/strict";
import test from "node:test";
import { RawSocket } from "../../rig/raw-socket.ts";
import { startConsole } from "./running-console.ts";

const CASES: readonly (readonly [hosts: readonly string[], status: number])[] = [
  [["127.0.0.1"], 200],
  [["127.0.0.1", "127.0.0.1"], 400],
  [["127.0.0.1", "evil.example"], 400],
  [[], 400],
];

for (const [hosts, status] of CASES) {
  test(`a request with ${hosts.length} Host headers gets ${status}`, async (t) => {
    const { url } = await startConsole(t);
    const socket = new RawSocket({ port: Number(new URL(url).port) });
    t.after(() => socket.close());
    const lines = hosts.map((host) => `Host: ${host}\r\n`).join("");
    socket.send(`GET /healthz HTTP/1.1\r\n${lines}connection: close\r\n\r\n`);
    const [answer] = await socket.responsesUntilClosed();
    assert.equal(answer?.status, status, answer?.body ?? "no answer");
    if (status === 400) assert.equal(JSON.parse(answer?.body ?? "{}").error.code, "framing");
  });
}
