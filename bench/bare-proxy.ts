/**
 * The minimum cost of a proxy on this platform: node:http toward the client, undici toward the upstream, nothing inspected, and the bytes of
 * one turn of the event loop written at once. `node bench/bare-proxy.ts UPSTREAM_URL CONNECTIONS` prints its port as JSON.
 */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import process from "node:process";
import { Pool } from "undici";

const [upstreamUrl = "", connections = "1"] = process.argv.slice(2);
const pool = new Pool(upstreamUrl, { connections: Number(connections) });

const server = createServer((request, response) => {
  const chunks: Buffer[] = [];
  request.on("data", (chunk: Buffer) => chunks.push(chunk));
  request.on("end", () => forward(request, Buffer.concat(chunks), response));
});

function forward(request: IncomingMessage, body: Buffer, response: ServerResponse): void {
  let waiting: Buffer[] = [];
  const flush = () => {
    if (waiting.length > 0) response.write(waiting.length === 1 ? waiting[0] : Buffer.concat(waiting));
    waiting = [];
  };
  const contentType = request.headers["content-type"];
  pool.dispatch(
    {
      method: "POST",
      path: request.url ?? "/",
      headers: {
        "content-type": contentType ?? "application/json",
        authorization: request.headers.authorization ?? "",
      },
      body,
    },
    {
      onRequestStart() {},
      onResponseStart(_controller, status, headers) {
        response.writeHead(status, { "content-type": String(headers["content-type"]) });
      },
      onResponseData(_controller, chunk) {
        if (waiting.push(chunk) === 1) setImmediate(flush);
      },
      onResponseEnd() {
        const rest = waiting;
        waiting = [];
        response.end(rest.length === 0 ? undefined : Buffer.concat(rest));
      },
      onResponseError() {
        response.destroy();
      },
    },
  );
}

server.listen({ port: 0, host: "127.0.0.1", backlog: 4_096 }, () => {
  process.stdout.write(`${JSON.stringify({ port: (server.address() as AddressInfo).port })}\n`);
});
process.on("SIGINT", () => process.exit(0));
