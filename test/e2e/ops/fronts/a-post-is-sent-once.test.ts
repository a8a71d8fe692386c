/**
 * A front never repeats a POST, whatever failed and whatever the client asks for: the second one could run, and be
 * charged, too. Only if a connection could not be made is another process tried. The test plays the process behind the
 * front.
 */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import test from "node:test";
import { freePorts } from "../../../rig/ports.ts";
import { FRONTS } from "./fronts.ts";

/** Headers by which a client asks Envoy to retry, or to time out at once. */
const PLEAS = {
  "x-envoy-retry-on": "5xx,reset,connect-failure,retriable-4xx",
  "x-envoy-max-retries": "3",
  "x-envoy-upstream-rq-timeout-ms": "1",
};

interface Played {
  readonly port: number;
  /** Number of POSTs that arrived. */
  posts: number;
  readonly server: Server;
}

/** The front has two of them; health checks are answered, and a POST as the test says. */
async function played(answer: "503" | "reset"): Promise<Played> {
  const server = createServer((req, res) => {
    if (req.url === "/readyz") return void res.end("{}");
    one.posts++;
    req.resume();
    req.once("end", () => {
      if (answer === "reset") res.socket?.resetAndDestroy();
      else res.writeHead(503, { "content-type": "application/json" }).end("{}");
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const one: Played = { port: (server.address() as AddressInfo).port, posts: 0, server };
  return one;
}

const post = (url: string) =>
  fetch(`${url}/v1/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json", ...PLEAS },
    body: "{}",
  });

for (const kind of FRONTS) {
  for (const answer of ["503", "reset"] as const) {
    test(`${kind.name}: a POST that got ${answer === "503" ? "a 503" : "a reset"} is not repeated`, async () => {
      const both = [await played(answer), await played(answer)];
      const front = await kind.start(both.map(({ port }) => ({ listen: port, adminPort: port })));
      try {
        for (let sent = 1; sent <= 4; sent++) {
          const reply = await post(front.url);
          assert.equal(reply.status, 503);
          await reply.arrayBuffer();
          assert.equal(
            both.reduce((sum, { posts }) => sum + posts, 0),
            sent,
          );
          // nginx stops using a server that broke a connection for fail_timeout: then one is left, and later none.
          if (kind.name === "nginx" && answer === "reset") break;
        }
      } finally {
        await front.stop();
        for (const { server } of both) {
          server.close();
          server.closeAllConnections();
        }
      }
    });
  }
}

test("nginx: a process that does not listen causes no error while another one does", async () => {
  const [unusedPort] = (await freePorts(1)) as [number];
  const listening = await played("503");
  const front = await FRONTS[0]?.start([unusedPort, listening.port].map((port) => ({ listen: port, adminPort: port })));
  assert.ok(front);
  try {
    for (let sent = 1; sent <= 4; sent++) {
      await (await post(front.url)).arrayBuffer();
      assert.equal(listening.posts, sent);
    }
  } finally {
    await front.stop();
    listening.server.close();
    listening.server.closeAllConnections();
  }
});
