/**
 * docs/failure-model.md row H7: visitors without a key share the site's connections by address; a single address cannot
 * take them all.
 */
import assert from "node:assert/strict";
import test, { type TestContext } from "node:test";
import fc from "fast-check";
import type { ListenerOptions } from "../../../../src/accept/listener.ts";
import { type ReleaseSlot, SiteSlots } from "../../../../src/accept/site/slots.ts";
import { answerNamed, startRawSite } from "../../../rig/raw-site.ts";
import { exchange, RawSocket, type Target } from "../../../rig/raw-socket.ts";
import { causeOf, startEcho } from "../echo.ts";

const never = new AbortController().signal;
const settled = () => new Promise<void>((resolve) => setImmediate(resolve));

test("row H7: a single address gets half of the places, and a new address always finds one", async () => {
  const places = new SiteSlots({ slotsMax: 256, waitingMax: 0, waitMs: 1_000 });
  const takeAll = async (address: string): Promise<ReleaseSlot[]> => {
    const taken: ReleaseSlot[] = [];
    for (let leave = await places.acquire(address, never); leave; leave = await places.acquire(address, never))
      taken.push(leave);
    return taken;
  };
  const first = await takeAll("192.0.2.1");
  assert.equal(first.length, 128);
  const counts = [];
  for (let at = 2; at <= 9; at += 1) counts.push((await takeAll(`192.0.2.${at}`)).length);
  assert.deepEqual(counts, [64, 32, 16, 8, 4, 2, 1, 1]);
  assert.equal(places.census.taken, 256);
  for (const leave of [...first, ...first]) leave();
  assert.equal(places.census.taken, 128, "a slot is released once");
});

test("row H7: a /64 network counts as one address, and so do all clients without an address", async () => {
  const places = new SiteSlots({ slotsMax: 4, waitingMax: 0, waitMs: 1_000 });
  assert.ok(await places.acquire("2001:db8:0:1::1", never));
  assert.ok(await places.acquire("2001:db8:0:1::2", never));
  assert.equal(await places.acquire("2001:db8:0:1:ffff::3", never), undefined);
  assert.ok(await places.acquire(undefined, never));
  assert.equal(await places.acquire(undefined, never), undefined);
});

test("row H7: all addresses of an IPv6 network together leave room for others, and the network counts like one address", async () => {
  const places = new SiteSlots({ slotsMax: 256, waitingMax: 0, waitMs: 1_000 });
  const taken: ReleaseSlot[] = [];
  for (let at = 0; at < 256; at += 1) {
    const leave = await places.acquire(`2001:db8:0:${at.toString(16)}::1`, never);
    if (leave) taken.push(leave);
  }
  assert.equal(taken.length, 128);
  assert.ok(await places.acquire("2001:db8:1:1::1", never), "another network");
  assert.ok(await places.acquire("192.0.2.1", never));
  for (const leave of taken) leave();
  assert.equal(places.census.taken, 2);
  assert.ok(await places.acquire("2001:db8:0:1::1", never));
});

test("row H7: a visitor that leaves the queue, or whose wait ends, holds nothing", async () => {
  const places = new SiteSlots({ slotsMax: 2, waitingMax: 4, waitMs: 20 });
  const leave = await places.acquire("a", never);
  const left = new AbortController();
  const waiting = [places.acquire("a", never), places.acquire("a", left.signal)];
  assert.equal(await places.acquire("a", never), undefined, "one address may use half of the queue");
  const other = await places.acquire("b", never);
  left.abort();
  assert.deepEqual(await Promise.all(waiting), [undefined, undefined]);
  assert.equal(await places.acquire("a", left.signal), undefined, "a disconnected client gets no connection");
  leave?.();
  other?.();
  assert.deepEqual(places.census, { taken: 0, waiting: 0 });
});

test("row H7: the queues of addresses take turns, however fast the places of one of them are returned", async () => {
  const places = new SiteSlots({ slotsMax: 2, waitingMax: 8, waitMs: 60_000 });
  const first = await places.acquire("192.0.2.9", never);
  const second = await places.acquire("192.0.2.8", never);
  const served: { address: string; leave: ReleaseSlot | undefined }[] = [];
  const line = ["a", "a", "a", "b"].map(async (address) => {
    served.push({ address, leave: await places.acquire(address, never) });
  });
  first?.();
  for (let at = 0; at < line.length; at += 1) {
    await settled();
    served[at]?.leave?.();
  }
  assert.equal(served.map(({ address }) => address).join(""), "abaa");
  second?.();
  assert.deepEqual(places.census, { taken: 0, waiting: 0 });
});

/** A step of the model: an address enters, returns a place, or stops waiting. */
const step = fc.record({
  kind: fc.constantFrom("enter", "enter", "leave", "abort"),
  address: fc.constantFrom("a", "b", "c", "d", undefined),
  which: fc.nat(100),
});

test("row H7: in any order of steps no place is lost or given twice, and no one waits while a place is available", async () => {
  const sizes = fc.record({ slotsMax: fc.integer({ min: 1, max: 8 }), waitingMax: fc.integer({ min: 0, max: 6 }) });
  await fc.assert(
    fc.asyncProperty(sizes, fc.array(step, { maxLength: 60 }), async ({ slotsMax, waitingMax }, steps) => {
      const places = new SiteSlots({ slotsMax, waitingMax, waitMs: 60_000 });
      const held: { address: string | undefined; leave: ReleaseSlot }[] = [];
      const waiting: { address: string | undefined; abort: AbortController }[] = [];
      for (const { kind, address, which } of steps) {
        const before = held.filter((one) => one.address === address).length;
        const free = slotsMax - held.length;
        if (kind === "enter") {
          const one = { address, abort: new AbortController() };
          waiting.push(one);
          void places.acquire(address, one.abort.signal).then((leave) => {
            waiting.splice(waiting.indexOf(one), 1);
            if (leave) held.push({ address, leave });
          });
        } else if (kind === "leave" && held.length > 0) held.splice(which % held.length, 1)[0]?.leave();
        else if (kind === "abort" && waiting.length > 0) waiting[which % waiting.length]?.abort.abort();
        await settled();
        const mine = held.filter((one) => one.address === address).length;
        if (kind === "enter" && before < free) assert.equal(mine, before + 1, "a free slot is given at once");
        assert.deepEqual(places.census, { taken: held.length, waiting: waiting.length });
        assert.ok(held.length <= slotsMax && waiting.length <= waitingMax);
        for (const one of waiting) {
          const own = held.filter((each) => each.address === one.address).length;
          assert.ok(own >= slotsMax - held.length, `${one.address} waits although it is entitled to a slot`);
        }
      }
      for (const { abort } of waiting) abort.abort();
      await settled();
      for (const { leave } of held.splice(0)) leave();
      assert.deepEqual(places.census, { taken: 0, waiting: 0 });
    }),
    { numRuns: 200 },
  );
});

async function start(t: TestContext, options: Partial<ListenerOptions> = {}) {
  const site = await startRawSite(t);
  const echo = await startEcho(t, { siteUrl: () => site.url, trustProxy: ["127.0.0.1/32"], ...options });
  t.after(() => assert.deepEqual(echo.crashes, []));
  site.behave = (request) => (request.target.startsWith("/slow") ? undefined : answerNamed(request));
  return { site, target: echo.target };
}

/** A request as a trusted front passes it on. */
const from = (address: string, path: string) =>
  `GET ${path} HTTP/1.1\r\nHost: site.test\r\nX-Forwarded-For: ${address}\r\n\r\n`;
const visit = async (target: Target, address: string) => (await exchange(target, from(address, "/page")))[0];

test("row H7: one visitor's slow requests leave room for all others, and return their places when they end", async (t) => {
  const { site, target } = await start(t, { siteLimits: { requestsMax: 8, waitingMax: 4, waitMs: 60_000 } });
  const greedy = Array.from({ length: 40 }, (_, at) => new RawSocket(target).send(from("192.0.2.1", `/slow-${at}`)));
  // Four run, two wait, and all others are refused.
  const refused = greedy.map((socket) => socket.responses(1));
  await site.until(() => site.requests.length === 4);
  let answered = 0;
  const allAnswered = Promise.withResolvers<void>();
  for (const one of refused) {
    void one.then(([answer]) => {
      if (answer === undefined) return;
      assert.deepEqual([answer.status, causeOf(answer.body)], [503, "overloaded"]);
      answered += 1;
      if (answered === 34) allAnswered.resolve();
    });
  }
  await allAnswered.promise;
  for (let at = 2; at < 60; at += 1) {
    const page = await visit(target, `192.0.2.${at}`);
    assert.equal(page?.body, `GET /page for 192.0.2.${at}\n`);
  }
  assert.equal(site.requests.filter((request) => request.target.startsWith("/slow")).length, 4);
  for (const socket of greedy) socket.close();
  await site.until(() => site.sockets.size === 0);
  assert.equal((await visit(target, "192.0.2.1"))?.status, 200);
});

test("row H7: a waiting visitor is served when a place becomes free", async (t) => {
  const { site, target } = await start(t, { siteLimits: { requestsMax: 2, waitMs: 60_000 } });
  const slow = new RawSocket(target).send(from("192.0.2.1", "/slow"));
  await site.until(() => site.requests.length === 1);
  const waits = visit(target, "192.0.2.1");
  assert.equal((await visit(target, "192.0.2.2"))?.status, 200);
  slow.close();
  assert.equal((await waits)?.body, "GET /page for 192.0.2.1\n");
});

test("row H7: a visitor whose wait ends without a place gets 503", async (t) => {
  const { site, target } = await start(t, { siteLimits: { requestsMax: 2, waitMs: 50 } });
  const slow = new RawSocket(target).send(from("192.0.2.1", "/slow"));
  await site.until(() => site.requests.length === 1);
  const answer = await visit(target, "192.0.2.1");
  assert.deepEqual([answer?.status, causeOf(answer?.body ?? "")], [503, "overloaded"]);
  assert.match(answer?.body ?? "", /The site has no free connection for this address/);
  slow.close();
});

test("row H7: a visitor who sends or reads too slowly loses its place", async (t) => {
  const { site, target } = await start(t, {
    siteLimits: { requestsMax: 2, waitMs: 60_000 },
    // Longer than a busy machine pauses: a request that is late before it reaches the site never has a place.
    limits: { requestTimeoutMs: 3_000, headersTimeoutMs: 3_000, checkingIntervalMs: 50, writeStallMs: 200 },
  });
  const sends = new RawSocket(target).send(
    "PUT /slow HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 192.0.2.1\r\nContent-Length: 10\r\n\r\nbegun",
  );
  await site.until(() => site.connections.length === 1);
  assert.equal((await visit(target, "192.0.2.1"))?.status, 200);
  assert.equal((await sends.responsesUntilClosed())[0]?.status, 408);
  site.behave = (request) =>
    request.target === "/long"
      ? `HTTP/1.1 200 OK\r\ncontent-length: 90000000\r\n\r\n${"x".repeat(30_000_000)}`
      : answerNamed(request);
  const reads = new RawSocket(target);
  reads.socket.pause();
  reads.send(from("192.0.2.1", "/long"));
  await site.until(() => site.requests.at(-1)?.target === "/long");
  assert.equal((await visit(target, "192.0.2.1"))?.status, 200);
  reads.close();
});
