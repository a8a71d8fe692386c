/**
 * docs/failure-model.md rows 18 and H6: WebSockets to the site: what is refused, what passes, and when a connection
 * ends that neither side ends.
 */
import assert from "node:assert/strict";
import type { Socket } from "node:net";
import test, { type TestContext } from "node:test";
import type { ListenerOptions } from "../../../../src/accept/listener.ts";
import { socketsKeptBy } from "../../../rig/kept-sockets.ts";
import { answerNamed, answerOf, type RawSite, startRawSite } from "../../../rig/raw-site.ts";
import { exchange, RawSocket, type Target } from "../../../rig/raw-socket.ts";
import { causeOf, startEcho } from "../echo.ts";

const GRANTED = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n";

async function start(t: TestContext, options: Partial<ListenerOptions> = {}) {
  const site = await startRawSite(t);
  const echo = await startEcho(t, { siteUrl: () => site.url, ...options });
  t.after(() => assert.deepEqual(echo.crashes, []));
  return { site, target: echo.target, listener: echo.listener };
}

const ask = (path = "/live", ...headers: string[]) =>
  [`GET ${path} HTTP/1.1`, "Host: site.test", "Connection: Upgrade", "Upgrade: websocket", ...headers, "", ""].join(
    "\r\n",
  );

/** Accepts every upgrade and returns the site's socket. */
function grants(site: RawSite): Promise<Socket> {
  const granted = Promise.withResolvers<Socket>();
  site.behave = (request, socket) => {
    if (!request.headers.some(([name]) => name === "upgrade")) return answerNamed(request);
    // Frames follow from here on.
    socket.removeAllListeners("data");
    socket.write(GRANTED);
    granted.resolve(socket);
    return undefined;
  };
  return granted.promise;
}

const isOpen = (text: string) => text.startsWith("HTTP/1.1 101 ") && text.includes("\r\n\r\n");
const nextVisit = async (target: Target) => (await exchange(target, "GET /next HTTP/1.1\r\nHost: a\r\n\r\n"))[0]?.body;

test("row H6: bytes pass both ways, those sent with the request included, and any number of them", async (t) => {
  const { site, target } = await start(t);
  const granted = grants(site);
  const client = new RawSocket(target).send(`${ask()}ahead`);
  const socket = await granted;
  let seen = "";
  socket.on("data", (bytes: Buffer) => {
    seen += bytes.toString("latin1");
    if (seen === "ahead") socket.write("hello");
  });
  await client.until((text) => text.endsWith("hello"));
  const mb = "x".repeat(1_000_000);
  for (let count = 1; count <= 5; count += 1) client.send(mb);
  client.send("!");
  const all = Promise.withResolvers<void>();
  socket.on("data", () => seen.endsWith("!") && all.resolve());
  await all.promise;
  assert.equal(seen.length, 5 + 5_000_000 + 1);
  client.close();
  await site.until(() => site.sockets.size === 0);
});

test("row H6: bytes that a client sends before the 101 are held back and not read as a second request", async (t) => {
  const { site, target } = await start(t);
  site.behave = () => answerOf("no", "GET", "HTTP/1.1 403 No");
  const client = new RawSocket(target).send(`${ask()}GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n`);
  const [answer, ...more] = await client.responsesUntilClosed();
  assert.deepEqual([answer?.status, answer?.body, more.length], [403, "no", 0]);
  assert.deepEqual(
    site.requests.map((request) => request.target),
    ["/live"],
  );
  assert.ok(!site.connections.join("").includes("smuggled"));
});

test("row H6: the head of a 101 is cleaned like any other", async (t) => {
  const { site, target } = await start(t);
  const own = [
    "HTTP/1.1 101 Switching Protocols",
    "upgrade: WebSocket",
    "connection: upgrade, x-hop",
    "x-hop: 1",
    "x-accel-redirect: /protected",
    "X_Accel_Buffering: no",
    "x-sendfile: /etc/hostname",
    "keep-alive: timeout=1",
    "content-length: 5",
    "sec-websocket-accept: a=",
    "set-cookie: a=1",
    "set-cookie: b=2",
    "",
    "",
  ].join("\r\n");
  site.behave = () => own;
  const client = new RawSocket(target).send(ask());
  const text = await client.until(isOpen);
  const lines = text.split("\r\n").filter((line) => !line.startsWith("Date: "));
  assert.deepEqual(lines, [
    "HTTP/1.1 101 Switching Protocols",
    "sec-websocket-accept: a=",
    "set-cookie: a=1",
    "set-cookie: b=2",
    "connection: Upgrade",
    "upgrade: websocket",
    "",
    "",
  ]);
  client.close();
});

const REFUSALS: Readonly<Record<string, string>> = {
  "with a length": answerOf("not here", "GET", "HTTP/1.1 403 No\r\nx-accel-redirect: /protected\r\nx-own: 1"),
  "in chunks": "HTTP/1.1 403 No\r\nx-own: 1\r\ntransfer-encoding: chunked\r\n\r\n8\r\nnot here\r\n0\r\n\r\n",
};

for (const [name, answer] of Object.entries(REFUSALS)) {
  test(`row H6: the answer of a site that refuses ${name} is passed on, and the connection ends`, async (t) => {
    const { site, target } = await start(t);
    site.behave = () => answer;
    const [got] = await new RawSocket(target).send(ask()).responsesUntilClosed();
    assert.deepEqual([got?.status, got?.body, got?.complete], [403, "not here", true]);
    assert.deepEqual([got?.headers["x-own"], got?.headers.connection], ["1", "close"]);
    assert.equal(got?.headers["x-accel-redirect"], undefined);
  });
}

test("row H6: a slow reader receives a long refusal completely, and a cut one is visibly cut", async (t) => {
  const { site, target } = await start(t);
  const mb = "0123456789abcdef".repeat(65_536);
  site.behave = () => answerOf(mb.repeat(8));
  const slow = new RawSocket(target);
  slow.socket.pause();
  slow.send(ask());
  await site.until(() => site.requests.length === 1);
  slow.socket.resume();
  const [whole] = await slow.responsesUntilClosed();
  assert.equal(whole?.body.length, 8 * mb.length);
  site.behave = (_request, socket) => void socket.end("HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf");
  const [cut] = await new RawSocket(target).send(ask()).responsesUntilClosed();
  assert.deepEqual([cut?.status, cut?.complete], [200, false]);
});

const UNSOUND: Readonly<Record<string, string>> = {
  "another protocol": GRANTED.replace("websocket", "h2c"),
  "no protocol": "HTTP/1.1 101 Switching Protocols\r\n\r\n",
  "two protocols": GRANTED.replace("websocket", "websocket\r\nUpgrade: h2c"),
  "no HTTP": "hello\r\n\r\n",
  "a head that is too long": GRANTED.replace("\r\n\r\n", `\r\na: ${"x".repeat(17_000)}\r\n\r\n`),
};

for (const [name, answer] of Object.entries(UNSOUND)) {
  test(`row H6: a site that answers with ${name}: 502, and the connection ends`, async (t) => {
    const { site, target } = await start(t);
    site.behave = () => answer;
    const [got] = await new RawSocket(target).send(ask()).responsesUntilClosed();
    assert.equal(got?.status, 502);
    await site.until(() => site.sockets.size === 0);
  });
}

test("row H6: an upgrade that is never answered ends: 504", async (t) => {
  const { site, target } = await start(t, { siteLimits: { upgradeHeadMs: 100 } });
  site.behave = () => undefined;
  const [answer] = await new RawSocket(target).send(ask()).responsesUntilClosed();
  assert.equal(answer?.status, 504);
  await site.until(() => site.sockets.size === 0);
});

test("row H6: a site that is unreachable, or closes before its answer, ends the client's connection: 502", async (t) => {
  const away = await startEcho(t, { siteUrl: () => "http://127.0.0.1:1" });
  assert.equal((await new RawSocket(away.target).send(ask()).responsesUntilClosed())[0]?.status, 502);
  const { site, target } = await start(t);
  for (const leave of [(socket: Socket) => socket.end(), (socket: Socket) => socket.resetAndDestroy()]) {
    site.behave = (_request, socket) => void leave(socket);
    assert.equal((await new RawSocket(target).send(ask()).responsesUntilClosed())[0]?.status, 502);
  }
});

for (const reset of [false, true]) {
  const how = reset ? "a reset" : "an end";
  test(`row H6: ${how} of the site's side ends the client's, after its last bytes`, async (t) => {
    const { site, target } = await start(t);
    const granted = grants(site);
    const client = new RawSocket(target).send(ask());
    const socket = await granted;
    await client.until(isOpen);
    if (reset) socket.resetAndDestroy();
    else socket.end("last bytes");
    await client.closed;
    if (!reset) assert.ok(client.text.endsWith("last bytes"));
  });

  test(`row H6: ${how} of the client's side ends the site's`, async (t) => {
    const { site, target } = await start(t);
    const granted = grants(site);
    const client = new RawSocket(target).send(ask());
    const socket = await granted;
    await client.until(isOpen);
    let seen = "";
    socket.on("data", (bytes: Buffer) => {
      seen += bytes;
    });
    if (reset) client.close(true);
    else client.socket.end("last bytes");
    await site.until(() => site.sockets.size === 0);
    if (!reset) assert.equal(seen, "last bytes");
    client.close();
  });

  test(`row H6: ${how} of the client's side before the answer ends the site's`, async (t) => {
    const { site, target } = await start(t);
    site.behave = () => undefined;
    const client = new RawSocket(target).send(ask());
    await site.until(() => site.requests.length === 1);
    client.close(reset);
    await site.until(() => site.sockets.size === 0);
  });
}

test("row H6: a client that never ends its own half is cut", async (t) => {
  const { site, target, listener } = await start(t, { limits: { lingerMs: 100 } });
  const granted = grants(site);
  const client = new RawSocket(target).send(ask());
  const socket = await granted;
  await client.until(isOpen);
  client.socket.removeAllListeners("end");
  socket.end();
  // Resolves when no connection is left.
  await listener.close();
  client.close();
});

test("row H6: silence of both sides ends the connection, bytes from either keep it open", async (t) => {
  const { site, target } = await start(t, { siteLimits: { idleMs: 300 } });
  const granted = grants(site);
  const client = new RawSocket(target).send(ask());
  const socket = await granted;
  await client.until(isOpen);
  const began = performance.now();
  for (let count = 1; performance.now() - began < 900; count += 1) {
    socket.write(`${count};`);
    await client.until((text) => text.endsWith(`${count};`));
  }
  assert.equal(client.isClosed, false);
  await client.closed;
  await site.until(() => site.sockets.size === 0);
});

const NOT_TAKEN: Readonly<Record<string, string>> = {
  "with a length": `${ask("/live", "Content-Length: 40")}${"GET /smuggled HTTP/1.1\r\nHost: abcdef\r\n\r\n"}`,
  "with a length of 0": ask("/live", "Content-Length: 0"),
  "with chunks": `${ask("/live", "Transfer-Encoding: chunked")}5\r\nhello\r\n0\r\n\r\n`,
  "with POST": ask().replace("GET", "POST").replace("\r\n\r\n", "\r\nContent-Length: 0\r\n\r\n"),
  "to another protocol": ask().replace("websocket", "h2c"),
  "to several protocols": ask().replace("websocket", "websocket, h2c"),
  "that Connection does not name": ask().replace("Connection: Upgrade", "Connection: keep-alive"),
};

for (const [name, bytes] of Object.entries(NOT_TAKEN)) {
  test(`row 18: an upgrade ${name} is a plain request`, async (t) => {
    const { site, target } = await start(t);
    grants(site);
    const client = new RawSocket(target).send(bytes);
    const [answer] = await client.responses(1);
    assert.match(answer?.body ?? "", /^(?:GET|POST) \/live for 127\.0\.0\.1\n$/);
    client.send("GET /next HTTP/1.1\r\nHost: a\r\n\r\n");
    assert.equal((await client.responses(2))[1]?.body, "GET /next for 127.0.0.1\n");
    client.close();
    assert.deepEqual(
      site.requests.map((request) => request.target),
      ["/live", "/next"],
    );
    assert.ok(!site.requests.some(({ headers }) => headers.some(([each]) => each === "upgrade")));
  });
}

test("row 18: HTTP/1.0 is not upgraded", async (t) => {
  const { site, target } = await start(t);
  grants(site);
  const [answer] = await new RawSocket(target).send(ask().replace("HTTP/1.1", "HTTP/1.0")).responsesUntilClosed();
  assert.equal(answer?.body, "GET /live for 127.0.0.1\n");
});

test("row 18: an upgrade after a running request waits for its turn and is served as a plain request", async (t) => {
  const { site, target } = await start(t);
  const first = Promise.withResolvers<void>();
  site.behave = (request, socket) => {
    if (request.target === "/live") return answerNamed(request);
    void first.promise.then(() => socket.write(answerOf("first")));
    return undefined;
  };
  const client = new RawSocket(target).send(`GET /slow HTTP/1.1\r\nHost: a\r\n\r\n${ask()}`);
  await site.until(() => site.requests.length === 1);
  first.resolve();
  const answers = await client.responses(2);
  assert.deepEqual(
    answers.map(({ body }) => body),
    ["first", "GET /live for 127.0.0.1\n"],
  );
  client.close();
});

test("row H6: a refused upgrade gets its reason in the form of the API's errors", async (t) => {
  const { site, target } = await start(t);
  const [byTarget] = await new RawSocket(target).send(ask("/live#x")).responsesUntilClosed();
  assert.deepEqual([byTarget?.status, causeOf(byTarget?.body ?? "")], [400, "framing"]);
  const [byHost] = await new RawSocket(target).send(ask("/live", "Host: b")).responsesUntilClosed();
  assert.deepEqual([byHost?.status, causeOf(byHost?.body ?? "")], [400, "framing"]);
  assert.deepEqual(site.requests, []);
});

test("row H6: upgraded connections have a limit of their own and leave room for requests", async (t) => {
  const { site, target } = await start(t, { siteLimits: { upgradesMax: 4, waitMs: 50 } });
  grants(site);
  const clients: RawSocket[] = [];
  for (let count = 0; count < 2; count += 1) {
    const client = new RawSocket(target).send(ask());
    await client.until(isOpen);
    clients.push(client);
  }
  const [full] = await new RawSocket(target).send(ask()).responsesUntilClosed();
  assert.deepEqual([full?.status, causeOf(full?.body ?? "")], [503, "overloaded"]);
  assert.equal(await nextVisit(target), "GET /next for 127.0.0.1\n");
  clients[0]?.close();
  await site.until(() => site.sockets.size === 1);
  const after = new RawSocket(target).send(ask());
  assert.ok(isOpen(await after.until(isOpen)));
  for (const client of [...clients, after]) client.close();
});

test("row H6: the deadline of a drain cuts upgraded connections, answered or not", async (t) => {
  const { site, target, listener } = await start(t);
  const granted = grants(site);
  const open = new RawSocket(target).send(ask());
  await granted;
  await open.until(isOpen);
  site.behave = () => undefined;
  const waiting = new RawSocket(target).send(ask("/waits"));
  await site.until(() => site.requests.length === 2);
  const closed = listener.close();
  listener.destroy();
  await Promise.all([open.closed, waiting.closed, closed]);
  await site.until(() => site.sockets.size === 0);
});

test("row H6: connections that have ended are garbage-collected", async (t) => {
  const { site, target } = await start(t);
  const pass = async () => {
    void grants(site);
    const client = new RawSocket(target).send(ask());
    await client.until(isOpen);
    client.close();
    await client.closed;
    await site.until(() => site.sockets.size === 0);
  };
  const rounds = 40;
  const kept = await socketsKeptBy(pass, rounds);
  assert.ok(kept < rounds / 2, `${kept} sockets of ${rounds} connections are still there`);
});
