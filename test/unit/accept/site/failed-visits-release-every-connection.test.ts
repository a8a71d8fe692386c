/**
 * docs/failure-model.md rows H4 to H7: sites and visitors that misbehave in every combination; afterwards every place
 * and connection is free.
 */
import assert from "node:assert/strict";
import type { Socket } from "node:net";
import test from "node:test";
import { isDeepStrictEqual } from "node:util";
import { answerNamed, answerOf, type RawSite, type SeenRequest, startRawSite } from "../../../rig/raw-site.ts";
import { exchange, RawSocket, type Target } from "../../../rig/raw-socket.ts";
import { startEcho } from "../echo.ts";

const ROUNDS = 6;
/** All that one address may have of 16. */
const PLACES = 8;
/**
 * A busy machine can stop the process for longer than the short limits of this listener, but not each time. A place that
 * was lost is missing each time.
 */
const TRIES = 20;

const SITES: Readonly<Record<string, (socket: Socket) => string | undefined>> = {
  answers: () => answerOf("page"),
  grants: () => "HTTP/1.1 101 Switching\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\nhello",
  ends: (socket) => void socket.end(),
  resets: (socket) => void socket.resetAndDestroy(),
  "ends inside": (socket) => void socket.end("HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\npart"),
  "resets inside": (socket) => void socket.write("HTTP/1.1 200 OK\r\n\r\npart", () => socket.resetAndDestroy()),
  babbles: () => "220 mail.test ESMTP\r\n",
  "answers twice": () => answerOf("page") + answerOf("page"),
  "stays silent": () => undefined,
  "stops inside": () => "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\npart\r\n",
};

const BODIES = [
  "",
  "Content-Length: 4\r\n\r\nbody",
  "Transfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n",
  "Content-Length: 9\r\n\r\nbod",
];

const VISITORS: Readonly<Record<string, (client: RawSocket) => unknown>> = {
  reads: () => undefined,
  leaves: (client) => client.close(),
  resets: (client) => client.close(true),
  "ends its half": (client) => client.socket.end(),
  "sends garbage": (client) => client.send("\0\0\r\n\r\n"),
};

/**
 * Takes every place of one address: the site answers when all of these requests have reached it. @returns the bodies of
 * the answers.
 */
async function allAtOnce(site: RawSite, target: Target): Promise<readonly (string | undefined)[]> {
  const held: { readonly request: SeenRequest; readonly socket: Socket }[] = [];
  site.behave = (request, socket) => {
    held.push({ request, socket });
    if (held.length === PLACES) for (const one of held) one.socket.write(answerNamed(one.request));
    return undefined;
  };
  const asked = Array.from({ length: PLACES }, (_, at) => exchange(target, `GET /${at} HTTP/1.1\r\nHost: a\r\n\r\n`));
  return (await Promise.all(asked)).map(([answer]) => answer?.body);
}

test("rows H4 to H7: every site with every visitor, body, upgrade and moment of leaving", async (t) => {
  const site = await startRawSite(t);
  const echo = await startEcho(t, {
    siteUrl: () => site.url,
    siteLimits: { requestsMax: 16, upgradesMax: 16, waitMs: 200, headMs: 150, upgradeHeadMs: 150, idleMs: 150 },
    limits: { requestTimeoutMs: 150, headersTimeoutMs: 100, checkingIntervalMs: 50, lingerMs: 50 },
  });
  site.behave = (request, socket) => {
    return SITES[new URLSearchParams(request.target.slice(2)).get("site") ?? ""]?.(socket);
  };
  const visits: (() => Promise<void>)[] = [];
  for (const kind of Object.keys(SITES)) {
    for (const [name, misbehave] of Object.entries(VISITORS)) {
      for (const body of [...BODIES, "upgrade"]) {
        const upgrade = body === "upgrade" ? "Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n" : undefined;
        const method = upgrade || body === "" ? "GET" : "POST";
        const head = `${method} /?${new URLSearchParams({ site: kind, visitor: name })} HTTP/1.1\r\nHost: a\r\n`;
        const bytes = head + (upgrade ?? (body === "" ? "\r\n" : body));
        for (const early of [true, false]) {
          visits.push(async () => {
            const client = new RawSocket(echo.target).send(bytes);
            if (!early) await client.until((text) => text.includes("\r\n\r\n"));
            misbehave(client);
            // The connection never stays: the client closes answered ones, and all others end by themselves.
            await client.until((text) => text.includes("\r\n\r\n") && !text.includes(" 101 "));
            client.close();
            await client.closed;
          });
        }
      }
    }
  }
  for (let round = 0; round < ROUNDS; round += 1) {
    const rest = [...visits];
    const worker = async () => {
      for (let next = rest.pop(); next; next = rest.pop()) await next();
    };
    await Promise.all(Array.from({ length: 24 }, worker));
  }
  await site.until(() => site.sockets.size === 0);
  assert.deepEqual(echo.crashes, []);
  const expected = Array.from({ length: PLACES }, (_, at) => `GET /${at} for 127.0.0.1\n`);
  for (let tries = 1; ; tries += 1) {
    const answers = await allAtOnce(site, echo.target);
    if (tries < TRIES && !isDeepStrictEqual(answers, expected)) continue;
    assert.deepEqual(answers, expected);
    break;
  }
  echo.listener.close();
  await site.until(() => site.sockets.size === 0);
});
