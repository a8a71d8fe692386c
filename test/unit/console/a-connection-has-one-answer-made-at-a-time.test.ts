/**
 * docs/failure-model.md row D6, of the admin listener: what one connection to it may cost. A page of metrics is large, whoever
 * reaches the listener may ask for it on this machine, and who reads nothing could have thousands made.
 */
import assert from "node:assert/strict";
import { connect } from "node:net";
import test, { type TestContext } from "node:test";
import { RawSocket } from "../../rig/raw-socket.ts";
import { startConsole } from "./running-console.ts";

const PAGE = "x".repeat(4_000_000);
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

test("one page is made for a connection that reads nothing, however many it asks for", async (t) => {
  const { console, client, count } = await consoleWithPages(t);
  const reader = connect(Number(new URL(console.url).port), "127.0.0.1").pause();
  t.after(() => reader.destroy());
  reader.write(METRICS.repeat(17));
  // Others have been answered meanwhile, several turns of the loop later.
  for (let i = 0; i < 5; i++) assert.equal((await console.ask("GET", "/healthz")).status, 200);
  assert.equal(count.pages, 1);
  reader.resume();
  await client().send(HEALTH).next();
});

test("requests that wait are answered in their order, each when the one before it has left", async (t) => {
  const { client, count } = await consoleWithPages(t, "a page");
  const asked = client().send(
    `${METRICS}${HEALTH}GET /admin/v1/accounts HTTP/1.1\r\nhost: evil.test\r\n\r\n${METRICS}`,
  );
  const statuses: (number | undefined)[] = [];
  for (let i = 0; i < 4; i++) statuses.push((await asked.next())?.status);
  assert.deepEqual([statuses, count.pages], [[200, 200, 401, 200], 2]);
});

test("sixteen may wait, and a connection with one more ends", async (t) => {
  const { client } = await consoleWithPages(t);
  const patient = client().send(METRICS + HEALTH.repeat(16));
  for (let i = 0; i < 17; i++) assert.equal((await patient.next())?.status, 200);
  const greedy = client().send(METRICS + HEALTH.repeat(17));
  await greedy.closed;
  assert.ok(!greedy.text.includes("alive"), "at once, and not when nothing more has come");
});

test("who asks in one turn of the loop shares a page", async (t) => {
  const { client, count } = await consoleWithPages(t, "a page");
  const clients = Array.from({ length: 20 }, client);
  // All have a connection before any asks.
  for (const one of clients) assert.equal((await one.send(HEALTH).next())?.status, 200);
  const answers = await Promise.all(clients.map((one) => one.send(METRICS).next()));
  assert.ok(answers.every((answer) => answer?.status === 200));
  assert.ok(count.pages < 20, `${count.pages} pages`);
  assert.equal((await clients[0]?.send(METRICS).next())?.status, 200);
});

test("what two servers may read as two requests is refused, and the authority of a target counts", async (t) => {
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
