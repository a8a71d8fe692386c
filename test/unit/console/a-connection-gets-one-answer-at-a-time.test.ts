/**
 * docs/failure-model.md row D6, for the admin listener: what one connection may cost. A page of metrics is large, any
 * program on this machine may request it, and a client that reads nothing could otherwise have thousands of them
 * generated.
 */
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import test, { type TestContext } from "node:test";
import { Servers } from "../../../src/console/servers.ts";
import { type Clock, systemClock } from "../../../src/values/time.ts";
import { RawSocket } from "../../rig/raw-socket.ts";
import { ADMIN_TOKEN, startConsole } from "./running-console.ts";

/** More than the kernel buffers. */
const PAGE = "x".repeat(64_000_000);
/** Node's own limits are longer and could be mistaken for ours. */
const SOON = { timeout: 30_000 };
const HOUR_MS = 3_600_000;
const METRICS = "GET /metrics HTTP/1.1\r\nhost: localhost\r\n\r\n";
const HEALTH = "GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n";

async function consoleWithPages(t: TestContext, page = PAGE) {
  const count = { pages: 0 };
  const metrics = async () => {
    count.pages++;
    return { contentType: "text/plain", body: page };
  };
  const console = await startConsole(t, { metrics });
  const client = () => new RawSocket({ port: Number(new URL(console.url).port) });
  return { console, client, count };
}

test("for a connection that reads nothing, one page is generated, however many it requests", async (t) => {
  const { console, client, count } = await consoleWithPages(t);
  const reader = connect(Number(new URL(console.url).port), "127.0.0.1").pause();
  t.after(() => reader.destroy());
  reader.write(METRICS.repeat(17));
  // Other requests have been answered in between, over several turns of the event loop.
  for (let i = 0; i < 5; i++) assert.equal((await console.ask("GET", "/healthz")).status, 200);
  assert.equal(count.pages, 1);
  // After it has disconnected, no further page is generated for it.
  reader.destroy();
  for (let i = 0; i < 5; i++) assert.equal((await client().send(HEALTH).next())?.status, 200);
  assert.equal(count.pages, 1);
});

test("waiting requests are answered in order, each after the answer before it was sent", async (t) => {
  const { client, count } = await consoleWithPages(t, "a page");
  const asked = client().send(
    `${METRICS}${HEALTH}GET /admin/v1/accounts HTTP/1.1\r\nhost: evil.test\r\n\r\n${METRICS}`,
  );
  const statuses: (number | undefined)[] = [];
  for (let i = 0; i < 4; i++) statuses.push((await asked.next())?.status);
  assert.deepEqual([statuses, count.pages], [[200, 200, 401, 200], 2]);
});

test("sixteen requests may wait, and a connection with one more is closed", async (t) => {
  const { client } = await consoleWithPages(t, "a page");
  const patient = client().send(METRICS + HEALTH.repeat(16));
  for (let i = 0; i < 17; i++) assert.equal((await patient.next())?.status, 200);
  const greedy = client().send(METRICS + HEALTH.repeat(17));
  await greedy.closed;
  assert.ok(!greedy.text.includes("alive"), "the connection is closed at once, without waiting for more bytes");
});

test("a request after an answer that closes its connection is not executed", async (t) => {
  const { console, client } = await consoleWithPages(t, "a page");
  const body = '{"name":"eve"}';
  const head = ["POST /admin/v1/accounts HTTP/1.1", "host: localhost", `authorization: Bearer ${ADMIN_TOKEN}`];
  const create = `${[...head, "content-type: application/json", `content-length: ${body.length}`].join("\r\n")}\r\n\r\n${body}`;
  const asked = client().send(`GET /healthz HTTP/1.1\r\nhost: localhost\r\nhost: other.test\r\n\r\n${create}`);
  const answers = await asked.responsesUntilClosed();
  assert.deepEqual(
    answers.map(({ status }) => status),
    [400],
  );
  assert.equal((await console.ask("GET", "/admin/v1/accounts/eve")).status, 404);
  assert.equal((await client().send(create).next())?.status, 201);
});

test("bytes that are not HTTP after a request do not affect its answer, and close the connection", async (t) => {
  const { client, count } = await consoleWithPages(t, "y".repeat(8_000_000));
  const answers = await client().send(`${METRICS}${HEALTH}no HTTP\r\n\r\n`).responsesUntilClosed();
  assert.deepEqual(
    answers.map(({ status, body }) => [status, body.length]),
    [
      [200, 8_000_000],
      [200, '{"alive":true}'.length],
    ],
  );
  assert.equal(count.pages, 1);
  const alone = await client().send("no HTTP\r\n\r\n").responsesUntilClosed();
  assert.deepEqual(
    alone.map(({ status }) => status),
    [400],
  );
  const head = "POST /admin/v1/accounts HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n";
  const inBody = await client()
    .send(`${head}authorization: Bearer ${ADMIN_TOKEN}\r\ncontent-type: application/json\r\n\r\nZZ\r\n`)
    .responsesUntilClosed();
  assert.deepEqual(
    inBody.map(({ status }) => status),
    [400],
  );
});

test("requests that wait when the listener closes are answered, and then the connection ends", async (t) => {
  const { console, client } = await consoleWithPages(t, "z".repeat(8_000_000));
  const asked = client().send(METRICS + HEALTH + HEALTH);
  await once(asked.socket, "data");
  const closed = console.close();
  const answers = await asked.responsesUntilClosed();
  assert.deepEqual(
    answers.map(({ status, body }) => [status, body.length]),
    [
      [200, 8_000_000],
      [200, 14],
      [200, 14],
    ],
  );
  await closed;
});

test(
  "an idle connection ends at once when the listener closes, and half a request gets its usual time",
  SOON,
  async (t) => {
    const console = await startConsole(t, { clock: { ...systemClock, after: () => () => {} } });
    const idle = () => new RawSocket({ port: Number(new URL(console.url).port) });
    const [silent, answered, half] = [idle(), idle().send(HEALTH), idle().send(HEALTH)];
    assert.deepEqual([(await answered.next())?.status, (await half.next())?.status], [200, 200]);
    half.send("GET /healthz HTTP/1.1\r\nhost: localhost\r\n");
    assert.equal((await console.ask("GET", "/healthz")).status, 200);
    const closed = console.close();
    await Promise.all([silent.closed, answered.closed]);
    half.send("\r\n");
    assert.equal((await half.next())?.status, 200);
    await closed;
  },
);

/**
 * A connection to servers that answer each request with more than the kernel buffers, and the end of the last answer.
 */
async function connected(t: TestContext, changes: Partial<ConstructorParameters<typeof Servers>[1]>) {
  const answered = Promise.withResolvers<void>();
  const times = { headersTimeout: HOUR_MS, requestTimeout: HOUR_MS, keepAliveTimeout: HOUR_MS, timeout: HOUR_MS };
  const servers = new Servers(
    (_, response) => {
      response.once("close", answered.resolve);
      response.end(Buffer.alloc(PAGE.length));
    },
    { ...times, connectionsCheckingInterval: 20, ...changes },
  );
  const cutAtOnce: Clock["after"] = (_, cut) => {
    cut();
    return () => {};
  };
  t.after(() => servers.close({ ...systemClock, after: cutAtOnce }));
  const address = await servers.listen({ kind: "tcp", host: "127.0.0.1", port: 0 });
  assert.ok(address.kind === "tcp");
  const socket = connect(address.port, "127.0.0.1").on("error", () => {});
  t.after(() => socket.destroy());
  return { socket, answered: answered.promise };
}

test(
  "a connection is closed that sends nothing, half a head or half a body, or whose client does not read",
  SOON,
  async (t) => {
    const halves = ["", "GET /healthz HT", "POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 9\r\n\r\nhalf"];
    for (const half of halves) {
      const { socket } = await connected(t, { headersTimeout: 50, requestTimeout: 50 });
      socket.resume().write(half);
      await once(socket, "close");
    }
    const { socket, answered } = await connected(t, { timeout: 50 });
    socket.pause().write(METRICS);
    await answered;
  },
);

test("requests in the same turn of the event loop share a page", async (t) => {
  const { client, count } = await consoleWithPages(t, "a page");
  const clients = Array.from({ length: 20 }, client);
  // All are connected before any requests the page.
  for (const one of clients) assert.equal((await one.send(HEALTH).next())?.status, 200);
  const answers = await Promise.all(clients.map((one) => one.send(METRICS).next()));
  assert.ok(answers.every((answer) => answer?.status === 200));
  assert.ok(count.pages < 20, `${count.pages} pages`);
  assert.equal((await clients[0]?.send(METRICS).next())?.status, 200);
});

test("a request that two servers may read as two is refused, and the authority in a target counts as the host", async (t) => {
  const { client, console } = await consoleWithPages(t, "a page");
  const { port } = new URL(console.url);
  const statusOf = async (...lines: string[]) => {
    const answer = await client()
      .send(`${[...lines].join("\r\n")}\r\n\r\n`)
      .next();
    assert.match(answer?.headers["content-type"] ?? "", /^(application\/json|text\/plain)/);
    return answer?.status;
  };
  const metrics = "GET /metrics HTTP/1.1";
  const cases = [
    [400, metrics],
    [400, metrics, "host: localhost", "host: evil.test"],
    [400, metrics, "host: evil.test", "Host: localhost"],
    [417, metrics, "host: localhost", "expect: more"],
    [200, metrics, "host: localhost", "expect: 100-continue"],
    [200, `GET http://localhost:${port}/metrics HTTP/1.1`, "host: evil.test"],
    [401, "GET http://evil.test/metrics HTTP/1.1", "host: localhost"],
    [401, "GET http://evil.test/admin/v1/accounts HTTP/1.1", "host: localhost"],
    [400, "GET ftp://localhost/metrics HTTP/1.1", "host: localhost"],
    [400, "GET localhost HTTP/1.1", "host: localhost"],
  ] as const;
  for (const [status, ...lines] of cases) assert.equal(await statusOf(...lines), status, lines.join(" | "));
});
