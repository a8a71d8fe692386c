/**
 * docs/failure-model.md rows H4 and H5: for every answer of the site, the visitor gets one complete answer, one that is
 * visibly cut, or a 502 or 504; and the next visitor never gets any part of it.
 */
import assert from "node:assert/strict";
import { connect, type Socket } from "node:net";
import test, { type TestContext } from "node:test";
import type { ListenerOptions } from "../../../../src/accept/listener.ts";
import { answerNamed, answerOf, type RawSite, startRawSite } from "../../../rig/raw-site.ts";
import { exchange, type RawResponse, RawSocket, untilClosed } from "../../../rig/raw-socket.ts";
import { startEcho } from "../echo.ts";

async function start(t: TestContext, options: Partial<ListenerOptions> = {}) {
  const site = await startRawSite(t);
  const echo = await startEcho(t, { siteUrl: () => site.url, ...options });
  t.after(() => assert.deepEqual(echo.crashes, []));
  return { site, target: echo.target, listener: echo.listener };
}

const get = (path = "/page", ...headers: string[]) =>
  [`GET ${path} HTTP/1.1`, "Host: site.test", ...headers, "", ""].join("\r\n");

/** Sends two requests on one connection, the second for an ordinary page, which must be answered with that page. */
async function askThenVisit(site: RawSite, target: { port: number } | { path: string }, bytes: string, answer: string) {
  site.behave = (request) => (request.target === "/next" ? answerNamed(request) : answer);
  const client = new RawSocket(target).send(bytes);
  const [first] = await client.responses(1);
  // A broken answer ends the connection, so the next visitor opens another one.
  const next = client.isClosed || first?.headers.connection === "close" ? new RawSocket(target) : client;
  const text = next === client ? client.text.length : 0;
  next.send(get("/next"));
  const got = await next.until((all) => all.includes("GET /next", text));
  assert.match(got.slice(text), /^HTTP\/1\.1 200 OK\r\n[\s\S]*\r\n\r\nGET \/next for 127\.0\.0\.1\n$/);
  client.close();
  next.close();
  return first as RawResponse;
}

const HEAD = "HTTP/1.1 200 OK\r\n";
const many = (count: number) => Array.from({ length: count }, (_, at) => `h${at}: 1\r\n`).join("");

const UNSOUND: Readonly<Record<string, string>> = {
  "two lengths that differ": `${HEAD}content-length: 5\r\ncontent-length: 6\r\n\r\nhello!`,
  "two equal lengths": `${HEAD}content-length: 5\r\nContent-Length: 5\r\n\r\nhello`,
  "a list of lengths": `${HEAD}content-length: 5, 5\r\n\r\nhello`,
  "a length that is no number": `${HEAD}content-length: +5\r\n\r\nhello`,
  "a length and chunks": `${HEAD}content-length: 5\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n`,
  "chunks and a length": `${HEAD}transfer-encoding: chunked\r\ncontent-length: 5\r\n\r\n5\r\nhello\r\n0\r\n\r\n`,
  "a coding before chunked": `${HEAD}transfer-encoding: gzip, chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n`,
  "an unknown coding": `${HEAD}transfer-encoding: identity\r\n\r\nhello`,
  "chunked twice": `${HEAD}transfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n`,
  "chunks in HTTP/1.0": "HTTP/1.0 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
  "HTTP/2.0": answerOf("hello", "GET", "HTTP/2.0 200 OK"),
  "status 099": answerOf("hello", "GET", "HTTP/1.1 099 Odd"),
  "status 600": answerOf("hello", "GET", "HTTP/1.1 600 Odd"),
  "status 1000": answerOf("hello", "GET", "HTTP/1.1 1000 Odd"),
  "a 101 that was not requested": "HTTP/1.1 101 Switching\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\nframes",
  "a 101 without a reason phrase": "HTTP/1.1 101 Switching\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n",
  "a head above 16 KiB": `${HEAD}a: ${"x".repeat(17_000)}\r\ncontent-length: 0\r\n\r\n`,
  "201 headers": `${HEAD}${many(200)}content-length: 0\r\n\r\n`,
  "3,000 headers": `${HEAD}${many(3_000).replaceAll(": 1", ":")}content-length: 0\r\n\r\n`,
  "a control character": `${HEAD}a: b\x01c\r\ncontent-length: 0\r\n\r\n`,
  "a folded line": `${HEAD}a: b\r\n c\r\ncontent-length: 0\r\n\r\n`,
  "bare line feeds": "HTTP/1.1 200 OK\ncontent-length: 0\n\n",
  "no HTTP": "SSH-2.0-OpenSSH_9.2\r\n",
};

for (const [name, answer] of Object.entries(UNSOUND)) {
  test(`row H4: ${name}: 502`, async (t) => {
    const { site, target } = await start(t);
    const first = await askThenVisit(site, target, get(), answer);
    assert.equal(first.status, 502);
    assert.match(first.body, /^The site behind this gateway does not .*\n$/);
  });
}

test("row H4: a site that closes without an answer: 502", async (t) => {
  const { site, target } = await start(t);
  site.behave = (_request, socket) => void socket.destroy();
  const [answer] = await exchange(target, get());
  assert.equal(answer?.status, 502);
});

test("row H4: an answer with 200 headers, cookies and a content coding passes unchanged", async (t) => {
  const { site, target } = await start(t);
  const own = `${many(196)}set-cookie: a=1\r\nset-cookie: b=2\r\ncontent-encoding: br\r\n`;
  const first = await askThenVisit(site, target, get(), `${HEAD}${own}content-length: 5\r\n\r\nhello`);
  assert.deepEqual([first.status, first.body, first.headers["content-encoding"]], [200, "hello", "br"]);
  assert.equal(Object.keys(first.headers).filter((each) => /^h\d+$/.test(each)).length, 196);
});

test("row H4: interim answers are skipped, and none reaches a client that did not ask for one", async (t) => {
  const { site, target } = await start(t);
  const interim =
    "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 103 Early\r\nlink: </a>\r\n\r\n";
  site.behave = () => `${interim}${interim}${answerOf("page")}`;
  const client = new RawSocket(target).send(get());
  await client.responses(1);
  assert.match(client.text, /^HTTP\/1\.1 200 OK\r\n/);
  assert.doesNotMatch(client.text, /HTTP\/1\.1 1/);
  client.close();
});

test("row H4: commands to the front and hop-by-hop fields are not passed to the client", async (t) => {
  const { site, target } = await start(t);
  const own = [
    "x-accel-redirect: /protected",
    "X-Accel-Expires: 5",
    "x_accel_redirect: /protected",
    "X-SendFile: /etc/hostname",
    "X-Envoy-Immediate-Health-Check-Fail: 1",
    "x_envoy_degraded: 1",
    "X-Request-Id: forged",
    "x-tollgate-origin: gateway",
    "connection: x-hop, content-length, keep-alive",
    "x-hop: 1",
    "keep-alive: timeout=5",
    "proxy-authenticate: Basic",
    "trailer: x",
    "upgrade: h2",
    "x-own: 1",
  ];
  const first = await askThenVisit(site, target, get(), `${HEAD}${own.join("\r\n")}\r\ncontent-length: 4\r\n\r\npage`);
  const { date: _, ...headers } = first.headers;
  assert.deepEqual(headers, {
    connection: "keep-alive",
    "content-length": "4",
    "keep-alive": "timeout=65, max=10000",
    "x-own": "1",
  });
});

const WITHOUT_BODY: readonly (readonly [name: string, bytes: string, answer: string, head: RegExp])[] = [
  [
    "HEAD",
    get().replace("GET", "HEAD"),
    answerOf("hello", "HEAD"),
    /^HTTP\/1\.1 200 OK\r\n[\s\S]*content-length: 5\r\n/,
  ],
  [
    "HEAD with chunks",
    get().replace("GET", "HEAD"),
    `${HEAD}transfer-encoding: chunked\r\n\r\n`,
    /^HTTP\/1\.1 200 OK\r\n/,
  ],
  ["HEAD with a body all the same", get().replace("GET", "HEAD"), answerOf("hello"), /content-length: 5\r\n/],
  ["204", get(), "HTTP/1.1 204 None\r\n\r\n", /^HTTP\/1\.1 204 No Content\r\n/],
  [
    "204 with a length and a body",
    get(),
    answerOf("hello", "GET", "HTTP/1.1 204 None"),
    /^HTTP\/1\.1 204 No Content\r\n/,
  ],
  [
    "304 with a length",
    get(),
    answerOf("hello", "HEAD", "HTTP/1.1 304 Same"),
    /^HTTP\/1\.1 304 [\s\S]*content-length: 5\r\n/,
  ],
  ["304 with a body all the same", get(), answerOf("hello", "GET", "HTTP/1.1 304 Same"), /^HTTP\/1\.1 304 /],
];

for (const [name, bytes, answer, head] of WITHOUT_BODY) {
  test(`row H4: ${name} has no body, and the next answer begins at the right byte`, async (t) => {
    const { site, target } = await start(t);
    site.behave = (request) => (request.target === "/next" ? answerNamed(request) : answer);
    const client = new RawSocket(target).send(bytes);
    const first = await client.until((text) => text.includes("\r\n\r\n"));
    assert.match(first, head);
    assert.ok(first.endsWith("\r\n\r\n"), "nothing is sent after the headers");
    if (name.startsWith("204")) assert.doesNotMatch(first, /content-length/);
    client.send(get("/next"));
    const all = await client.until((text) => text.includes("GET /next"));
    assert.match(all.slice(first.length), /^HTTP\/1\.1 200 OK\r\n[\s\S]*\r\n\r\nGET \/next for 127\.0\.0\.1\n$/);
    client.close();
  });
}

test("row H4: during a drain an answer closes its connection", async (t) => {
  const { target, listener } = await start(t);
  listener.lameDuck();
  const [answer] = await untilClosed(target, get());
  assert.deepEqual([answer?.body, answer?.headers.connection], ["GET /page for 127.0.0.1\n", "close"]);
});

test("row H5: surplus bytes after an answer, sent at once or later, reach no visitor", async (t) => {
  const { site, target } = await start(t);
  const forged = answerOf("forged");
  for (const later of [false, true]) {
    site.behave = (request, socket) => {
      if (request.target !== "/page") return answerNamed(request);
      if (!later) return `${answerOf("page")}${forged}${forged}`;
      // Sent when the gateway has closed its side, or on a connection that another visitor could reuse.
      socket.once("end", () => socket.write(forged));
      setImmediate(() => socket.write(forged));
      return answerOf("page");
    };
    const client = new RawSocket(target).send(get());
    assert.equal((await client.responses(1))[0]?.body, "page");
    for (const path of ["/a", "/b", "/c"]) {
      const [answer] = await exchange(target, get(path));
      assert.equal(answer?.body, `GET ${path} for 127.0.0.1\n`);
    }
    client.send(get("/d"));
    assert.equal((await client.responses(2))[1]?.body, "GET /d for 127.0.0.1\n");
    client.close();
  }
});

test("row H5: no connection to the site carries a second request", async (t) => {
  const { site, target } = await start(t);
  const client = new RawSocket(target);
  for (let count = 1; count <= 20; count += 1) await client.send(get(`/${count}`)).responses(count);
  client.close();
  assert.deepEqual(
    site.requests.map(({ connection }) => connection),
    Array.from({ length: 20 }, (_, at) => at),
  );
  for (const { headers } of site.requests)
    assert.deepEqual(headers.find(([name]) => name === "connection")?.[1], "close");
});

const LENGTH = `${HEAD}content-length: 10\r\n\r\nhalf`;
const CHUNKS = `${HEAD}transfer-encoding: chunked\r\n\r\n4\r\nhalf\r\n`;
const UNTIL_CLOSE = `${HEAD}x: y\r\n\r\nhalf`;
const BROKEN: readonly (readonly [name: string, answer: string, reset: boolean])[] = [
  ["reset inside a length", LENGTH, true],
  ["ended inside a length", LENGTH, false],
  ["reset inside chunks", CHUNKS, true],
  ["ended inside chunks", CHUNKS, false],
  ["ended inside a chunk", `${CHUNKS}8\r\nhal`, false],
  ["malformed inside chunks", `${CHUNKS}zz\r\n`, false],
  ["reset where only the end of the connection ends the body", UNTIL_CLOSE, true],
];

for (const [name, answer, reset] of BROKEN) {
  test(`row H4: an answer that is ${name} is visibly cut`, async (t) => {
    const { site, target } = await start(t);
    site.behave = (_request, socket) => {
      socket.write(answer);
      return undefined;
    };
    const client = new RawSocket(target).send(get());
    // Only an answer whose beginning has been relayed can be cut.
    await client.until((text) => text.includes("half"));
    for (const socket of site.sockets) {
      if (reset) socket.resetAndDestroy();
      else socket.end();
    }
    const [got] = await client.responsesUntilClosed();
    assert.deepEqual([got?.status, got?.complete], [200, false]);
    site.behave = answerNamed;
    assert.equal((await exchange(target, get("/next")))[0]?.body, "GET /next for 127.0.0.1\n");
  });
}

test("row H4: an answer delimited by the end of its connection is complete after an orderly end", async (t) => {
  const { site, target } = await start(t);
  site.behave = (_request, socket) => void socket.end(UNTIL_CLOSE);
  const [got] = await exchange(target, get());
  assert.deepEqual([got?.body, got?.headers["transfer-encoding"]], ["half", "chunked"]);
});

test("row H4: silence before an answer is 504, silence in the middle cuts it", async (t) => {
  const { site, target } = await start(t, { siteLimits: { headMs: 200, idleMs: 200 } });
  site.behave = () => undefined;
  const [silent] = await exchange(target, get());
  assert.deepEqual([silent?.status, silent?.body], [504, "The site behind this gateway does not answer.\n"]);
  site.behave = () => "HTTP/1.1 100 Continue\r\n\r\n";
  assert.equal((await exchange(target, get()))[0]?.status, 504);
  site.behave = () => LENGTH;
  const [broken] = await untilClosed(target, get());
  assert.equal(broken?.complete, false);
  await site.until(() => site.sockets.size === 0);
});

test("row H4: a site that accepts the connection in time may answer slowly", async (t) => {
  const { site, target } = await start(t, { siteLimits: { connectMs: 100 } });
  t.mock.timers.enable({ apis: ["setTimeout"] });
  site.behave = (_request, socket) => {
    t.mock.timers.tick(101);
    socket.write(answerOf("slow"));
  };
  assert.equal((await exchange(target, get()))[0]?.body, "slow");
});

test("row H4: a site that accepts the connection and does nothing else: 502", async (t) => {
  const site = await startRawSite(t);
  // It waits for a request and does not start TLS.
  const echo = await startEcho(t, {
    siteUrl: () => site.url.replace("http:", "https:"),
    siteLimits: { connectMs: 200 },
  });
  const [answer] = await exchange(echo.target, get());
  assert.equal(answer?.status, 502);
  await site.until(() => site.sockets.size === 0);
});

test("row H5: an early answer is passed on, and the rest of the request goes nowhere", async (t) => {
  const { site, target } = await start(t);
  for (const framing of ["content-length: 100000", "transfer-encoding: chunked"]) {
    const begun = framing.startsWith("t") ? "5\r\nbegun\r\n" : "begun";
    site.onHead = (head, socket) => {
      if (head.method === "POST") socket.write(answerOf("too early"));
    };
    const client = new RawSocket(target).send(`POST /upload HTTP/1.1\r\nHost: a\r\n${framing}\r\n\r\n${begun}`);
    const [answer] = await client.responses(1);
    assert.deepEqual([answer?.body, answer?.headers.connection], ["too early", "close"]);
    client.send(get("/behind"));
    await client.closed;
    assert.equal((await exchange(target, get("/next")))[0]?.body, "GET /next for 127.0.0.1\n");
    assert.ok(!site.requests.some((request) => request.target === "/behind"));
    await site.until(() => site.sockets.size === 0);
  }
});

test("row H5: an early answer to a short body keeps the visitor's connection open", async (t) => {
  const { site, target } = await start(t);
  site.onHead = (head, socket) => {
    if (head.method === "POST") socket.write(answerOf("too early"));
  };
  // As much as the listener discards to keep the connection, and as much as Node buffers.
  const client = new RawSocket(target).send("POST /upload HTTP/1.1\r\nHost: a\r\ncontent-length: 65536\r\n\r\n");
  await client.responses(1);
  client.send(`${"x".repeat(65_536)}${get("/next")}`);
  assert.equal((await client.responses(2))[1]?.body, "GET /next for 127.0.0.1\n");
  client.close();
});

test("row H5: a body that is cut, malformed or too slow is never complete at the site", async (t) => {
  const { site, target } = await start(t, {
    // Longer than a busy machine pauses: a body that is late before it reaches the site never begins there.
    limits: { requestTimeoutMs: 3_000, headersTimeoutMs: 3_000, checkingIntervalMs: 50 },
  });
  const put = (framing: string, body: string) => `PUT /up HTTP/1.1\r\nHost: a\r\n${framing}\r\n\r\n${body}`;
  const arrived = () => site.until(() => site.connections.at(-1)?.includes("begun") === true);
  for (const bytes of [put("content-length: 10", "begun"), put("transfer-encoding: chunked", "5\r\nbegun\r\n")]) {
    for (const reset of [false, true]) {
      const leaving = new RawSocket(target).send(bytes);
      await arrived();
      leaving.close(reset);
      await site.until(() => site.sockets.size === 0);
    }
    const slow = await untilClosed(target, bytes);
    assert.equal(slow[0]?.status, 408);
    await site.until(() => site.sockets.size === 0);
  }
  const spoilt = new RawSocket(target).send(put("transfer-encoding: chunked", "5\r\nbegun\r\n"));
  await arrived();
  spoilt.send("zz\r\n");
  assert.equal((await spoilt.responsesUntilClosed())[0]?.status, 400);
  await site.until(() => site.sockets.size === 0);
  assert.deepEqual(site.requests, []);
});

test("row H5: 100 Continue is sent when the site requests the body, and not before", async (t) => {
  const { site, target } = await start(t);
  const put = "PUT /up HTTP/1.1\r\nHost: a\r\ncontent-length: 4\r\nExpect: 100-continue\r\n\r\n";
  const asked = Promise.withResolvers<() => void>();
  site.onHead = (head, socket) => {
    assert.equal(head.headers.find(([name]) => name === "expect")?.[1], "100-continue");
    asked.resolve(() => socket.write("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n"));
  };
  const client = new RawSocket(target).send(put);
  const ask = await asked.promise;
  assert.equal(client.text, "");
  ask();
  assert.equal(await client.until((text) => text.includes("\r\n\r\n")), "HTTP/1.1 100 Continue\r\n\r\n");
  client.send("body");
  const [answer] = await client.responses(1);
  assert.equal(answer?.body, "PUT /up for 127.0.0.1\n");
  assert.equal(client.text.split("100 Continue").length, 2, "one for each request");
  assert.equal(site.requests.at(-1)?.body, "body");
  client.close();
});

test("row H5: a refusal that the site sends before the body is passed on, without a 100", async (t) => {
  const { site, target } = await start(t);
  site.onHead = (_head, socket) => void socket.write(answerOf("no", "PUT", "HTTP/1.1 401 No"));
  const put = "PUT /up HTTP/1.1\r\nHost: a\r\ncontent-length: 400000\r\nExpect: 100-continue\r\n\r\n";
  const client = new RawSocket(target).send(put);
  const [answer] = await client.responses(1);
  assert.deepEqual([answer?.status, answer?.headers.connection], [401, "close"]);
  assert.doesNotMatch(client.text, /100 Continue/);
  await client.closed;
});

test("row H5: a client that does not wait for its 100 is served", async (t) => {
  const { site, target } = await start(t);
  const put = "PUT /up HTTP/1.1\r\nHost: a\r\ncontent-length: 4\r\nExpect: 100-continue\r\n\r\nbody";
  const [answer] = await exchange(target, put);
  assert.equal(answer?.body, "PUT /up for 127.0.0.1\n");
  assert.equal(site.requests.at(-1)?.body, "body");
});

test("row H4: an HTTP/1.0 client gets no chunks and no 100, and its request gets a Host", async (t) => {
  const { site, target } = await start(t);
  site.behave = () => `${HEAD}transfer-encoding: chunked\r\n\r\n4\r\npage\r\n0\r\nx-trailer: 1\r\n\r\n`;
  const client = new RawSocket(target).send(
    "PUT /old HTTP/1.0\r\nExpect: 100-continue\r\ncontent-length: 4\r\n\r\nbody",
  );
  await client.closed;
  assert.match(client.text, /^HTTP\/1\.1 200 OK\r\n[\s\S]*connection: close\r\n\r\npage$/i);
  assert.doesNotMatch(client.text, /transfer-encoding|100 Continue/);
  const [seen] = site.requests;
  assert.equal(seen?.body, "body");
  assert.deepEqual(
    seen.headers.filter(([name]) => name === "host" || name === "expect"),
    [["host", `127.0.0.1:${site.port}`]],
  );
});

test("row H4: bytes beyond ASCII in a head pass unchanged both ways, with a body and without", async (t) => {
  const { site, target } = await start(t);
  // Written here in Latin-1; in UTF-8 the bytes are ü and č, and one that is invalid.
  const odd = "\u00c3\u00bc \u00c4\u008d \u00ff";
  site.behave = () => `${HEAD}content-length: 004\r\nlocation: /${odd}\r\n\r\npage`;
  for (const [head, body] of [
    ["GET", ""],
    ["POST", "body"],
  ] as const) {
    const client = new RawSocket(target);
    const length = body === "" ? "" : `Content-Length: ${body.length}\r\n`;
    client.send(`${head} / HTTP/1.1\r\nHost: a\r\nCookie: n=${odd}\r\n${length}\r\n${body}`);
    const [answer] = await client.responses(1);
    assert.deepEqual([answer?.headers.location, answer?.headers["content-length"]], [`/${odd}`, "4"], head);
    assert.deepEqual(site.requests.at(-1)?.headers.find(([name]) => name === "cookie")?.[1], `n=${odd}`, head);
    client.close();
  }
});

test("row H4: 4 MB pass unchanged both ways", async (t) => {
  const { site, target } = await start(t);
  const mb = "0123456789abcdef".repeat(65_536);
  site.behave = (request) => answerOf(request.body);
  const client = connect({ host: "127.0.0.1", port: (target as { port: number }).port });
  client.write("PUT /big HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n");
  for (let at = 0; at < 4; at += 1) client.write(`${mb.length.toString(16)}\r\n${mb}\r\n`);
  client.write("0\r\n\r\n");
  let bytes = 0;
  for await (const piece of client) bytes += (piece as Buffer).length;
  assert.ok(bytes > 4 * mb.length && bytes < 4 * mb.length + 1_000);
  assert.equal(site.requests[0]?.body, mb.repeat(4));
});

test("row H4: what a visitor does not read is not read from the site", async (t) => {
  const { site, target } = await start(t);
  const opened = Promise.withResolvers<Socket>();
  site.behave = (_request, socket) => {
    socket.write(`${HEAD}\r\n`);
    opened.resolve(socket);
    return undefined;
  };
  const client = new RawSocket(target);
  client.socket.pause();
  client.send("GET /long HTTP/1.1\r\nHost: a\r\n\r\n");
  const socket = await opened.promise;
  const offered = 200_000_000;
  const piece = Buffer.alloc(65_536, 0x78);
  let taken = 0;
  for (; taken < offered && (socket.write(piece) || (await drainedSoon(socket))); taken += piece.length);
  // The kernel buffers some megabytes of both connections.
  assert.ok(taken < 24_000_000, `${taken} bytes were taken`);
  client.close();
  await site.until(() => site.sockets.size === 0);
});

/** Whether the socket accepts bytes again within many turns of the event loop. */
async function drainedSoon(socket: Socket): Promise<boolean> {
  let drained = false;
  socket.once("drain", () => {
    drained = true;
  });
  for (let turn = 0; turn < 2_000 && !drained; turn += 1) await new Promise((resolve) => setImmediate(resolve));
  return drained;
}
