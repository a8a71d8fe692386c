/** What an upstream sends in a turn of the event loop is processed at the end of that turn, and no later. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { gzipSync } from "node:zlib";
import type { DispatchAsk } from "../../../src/dispatch/ask.ts";
import { runAttempt, type UndecidedAttempt } from "../../../src/dispatch/attempt.ts";
import type { Choice } from "../../../src/dispatch/choose.ts";
import { BUFFERED_BYTES_MAX } from "../../../src/dispatch/upstream/handed-body.ts";
import type { HealthVerdict } from "../../../src/dispatch/upstream/health.ts";
import type { UpstreamController, UpstreamHandler } from "../../../src/dispatch/upstream/upstream.ts";
import { TransientList } from "../../../src/values/collections/transient.ts";
import { Cohort } from "../../../src/values/time.ts";
import { FakeClock, route, upstream as settingsOf, settled } from "./rig.ts";

/** An upstream played by the test: undici would deliver the same calls in the same order, at times of its own. */
function played(
  clock: FakeClock,
  inspector: Partial<DispatchAsk<null>["inspector"]> = {},
  stream = false,
  pathSuffix?: string,
) {
  const aborted: unknown[] = [];
  const flow: string[] = [];
  const verdicts: unknown[] = [];
  const firstBytes: unknown[] = [];
  const controller = {
    rawHeaders: [Buffer.from("of the whole read that they came in")],
    abort: (reason: unknown) => aborted.push(reason),
    pause: () => flow.push("paused"),
    resume: () => flow.push("resumed"),
  } as unknown as UpstreamController & { rawHeaders: Buffer[] | null };
  const fields: Record<string, string> = { "content-type": stream ? "text/event-stream" : "application/json" };
  let handler: UpstreamHandler | undefined;
  const upstream = {
    settings: settingsOf("up", "http://127.0.0.1:1"),
    health: { report: ({ kind, probe }: HealthVerdict) => verdicts.push([kind, probe]) },
    firstBytes: { add: (model: string, ms: number) => firstBytes.push([model, ms]) },
    send(_request: unknown, given: UpstreamHandler) {
      handler = given;
      given.onRequestStart?.(controller, {});
    },
  };
  const client = new AbortController();
  const ask = {
    stream,
    pathSuffix,
    headers: [],
    deadlineMs: clock.monotonicMs() + 1_000,
    signal: client.signal,
    inspector: { chunk: () => "accept", end: () => "accept", whole: () => "accept", ...inspector },
  } as unknown as DispatchAsk<null>;
  const choice = {
    upstream,
    route: route("up"),
    slot: { release() {} },
    encoded: { body: Buffer.from("{}"), token: null },
    probe: true,
  } as unknown as Choice<null>;
  const undecided = new TransientList<UndecidedAttempt>();
  const result = runAttempt(ask, choice, { clock, cohort: new Cohort(clock), undecided });
  const says = handler as unknown as Required<UpstreamHandler>;
  return {
    result,
    undecided,
    client,
    aborted,
    flow,
    verdicts,
    firstBytes,
    controller,
    fields,
    head: () => says.onResponseStart(controller, 200, fields, ""),
    data: (bytes: number) => says.onResponseData(controller, Buffer.alloc(bytes, " ")),
    /** Not compressed, so that it fills the buffer of the decompression. */
    packed: (bytes: Buffer) => says.onResponseData(controller, gzipSync(bytes, { level: 0 })),
    says: (text: string) => says.onResponseData(controller, Buffer.from(text)),
    end: () => says.onResponseEnd(controller, {}),
    breaks: () => says.onResponseError(controller, Object.assign(new Error("reset"), { code: "ECONNRESET" })),
  };
}

test("an answer that has been received takes precedence over a client that disconnects in the same turn", async () => {
  const upstream = played(new FakeClock());
  upstream.head();
  upstream.data(10);
  upstream.end();
  upstream.client.abort();
  const { kind, record } = await upstream.result;
  assert.deepEqual([kind, record.bytesReceived], ["answered", 10]);
});

test("an answer that has been received takes precedence over the request's deadline", async () => {
  const clock = new FakeClock();
  const upstream = played(clock);
  upstream.head();
  upstream.data(10);
  upstream.end();
  clock.advance(2_000);
  assert.equal((await upstream.result).kind, "answered");
});

test("an answer that has been received takes precedence over the end of the gateway", async () => {
  const upstream = played(new FakeClock());
  upstream.head();
  upstream.data(10);
  upstream.end();
  upstream.undecided.first?.stop();
  const { kind, record } = await upstream.result;
  assert.deepEqual([kind, record.bytesReceived], ["answered", 10]);
});

test("half an answer does not take precedence over the end of the gateway", async () => {
  const upstream = played(new FakeClock());
  upstream.head();
  upstream.data(10);
  upstream.undecided.first?.stop();
  const { kind, record } = await upstream.result;
  assert.deepEqual([kind, record.outcome, upstream.aborted.length], ["failed", "draining", 1]);
});

test("half an answer does not take precedence over a disconnect", async () => {
  const upstream = played(new FakeClock());
  upstream.head();
  upstream.data(10);
  upstream.client.abort();
  const { kind, record } = await upstream.result;
  assert.deepEqual([kind, record.bytesReceived, upstream.aborted.length], ["client_gone", 10, 1]);
});

test("at most 64 KiB are kept until the end of the turn, and the order is kept", async () => {
  const seen: number[] = [];
  const inspector = {
    chunk(_: null, bytes: Uint8Array) {
      seen.push(bytes.length);
      return "more" as const;
    },
  };
  const upstream = played(new FakeClock(), inspector, true);
  upstream.head();
  upstream.data(40_000);
  assert.deepEqual(seen, []);
  upstream.data(30_000);
  assert.deepEqual(seen, [40_000, 30_000]);
  upstream.data(20_000);
  upstream.data(40_000);
  assert.deepEqual(seen, [40_000, 30_000]);
  upstream.data(10_000);
  assert.deepEqual(seen, [40_000, 30_000, 20_000, 40_000, 10_000]);
  upstream.end();
  assert.equal((await upstream.result).kind, "answered");
});

test("small pieces of one turn are inspected as one, in their order", async () => {
  const seen: string[] = [];
  const inspector = {
    chunk(_: null, bytes: Uint8Array) {
      seen.push(Buffer.from(bytes).toString());
      return "more" as const;
    },
  };
  const upstream = played(new FakeClock(), inspector, true);
  upstream.head();
  for (const text of ["one ", "two ", "three ", "x".repeat(2_040), "four ", "five "]) upstream.says(text);
  upstream.end();
  const { record } = await upstream.result;
  assert.deepEqual(seen, ["one two three ", `${"x".repeat(2_040)}four `, "five "]);
  assert.equal(record.bytesReceived, 2_064);
});

test("an exception while a reply is inspected ends the attempt and is passed on", async () => {
  for (const when of ["whole", "chunk"] as const) {
    const defect = new Error("a defect");
    const inspector = {
      [when]() {
        throw defect;
      },
    };
    const upstream = played(new FakeClock(), inspector, when === "chunk");
    upstream.head();
    upstream.data(10);
    upstream.end();
    await assert.rejects(upstream.result, defect);
  }
});

/** A stream that was handed over with its first bytes, and how it ended for its reader. */
async function handed(onData: () => void = () => {}, pathSuffix?: string) {
  const clock = new FakeClock();
  const upstream = played(clock, {}, true, pathSuffix);
  clock.advance(30);
  upstream.head();
  upstream.says("first");
  await settled();
  const result = await upstream.result;
  assert.ok(result.kind === "answered" && result.body);
  const ends: string[] = [];
  result.body.consume({ data: onData, end: () => ends.push("end"), error: ({ cause }) => ends.push(cause) });
  return { ...upstream, ends, clock, body: result.body };
}

test("a stream that breaks off later counts for the health of its upstream, and no probe is decided twice", async () => {
  const { breaks, verdicts, ends } = await handed();
  breaks();
  await settled();
  assert.deepEqual(ends, ["upstream_unavailable"]);
  assert.deepEqual(verdicts, [
    ["ok", true],
    ["local", false],
  ]);
});

test("a stream of a side endpoint does not affect the health of the model's upstream", async () => {
  const { breaks, verdicts, ends } = await handed(() => {}, "/compact");
  breaks();
  await settled();
  assert.deepEqual(ends, ["upstream_unavailable"]);
  assert.deepEqual(verdicts, [
    ["none", true],
    ["none", false],
  ]);
});

test("a released body is read on although its reader had paused, and leaves no timer when it breaks off", async () => {
  const { data, breaks, flow, body, clock } = await handed();
  body.pause();
  data(BUFFERED_BYTES_MAX);
  await settled();
  assert.deepEqual(flow, ["paused"]);
  body.discardRest();
  assert.deepEqual([flow, clock.pending], [["paused", "resumed"], 1]);
  breaks();
  await settled();
  assert.equal(clock.pending, 0);
});

test("an exception in the reader of a stream ends the stream for it, and the connection", async () => {
  const { says, verdicts, ends, aborted } = await handed(() => {
    throw new Error("a defect");
  });
  says("second");
  await settled();
  assert.equal(ends.length, 1);
  assert.notEqual(ends[0], "end");
  assert.equal(aborted.length, 1);
  assert.equal(verdicts.length, 2);
});

test("a compressed body that arrives faster than it is decompressed pauses the upstream until there is room", async () => {
  const upstream = played(new FakeClock(), {}, true);
  upstream.fields["content-encoding"] = "gzip";
  upstream.head();
  upstream.packed(Buffer.alloc(65_530, "a line of text "));
  await settled();
  assert.deepEqual(upstream.flow.slice(0, 1), ["paused"]);
  assert.equal((await upstream.result).kind, "answered");
  while (upstream.flow.length < 2) await settled();
  assert.deepEqual(upstream.flow, ["paused", "resumed"]);
});

test("the headers of an answer are not kept in memory while its body arrives", async () => {
  const { controller } = await handed();
  assert.equal(controller.rawHeaders, null);
});

test("the time to the first byte of a stream is recorded once for its model", async () => {
  const { firstBytes, says } = await handed();
  says("more");
  await settled();
  assert.deepEqual(firstBytes, [["model-1", 30]]);
});

test("an attempt that is decided, however it ends, is not kept for the end of the gateway", async () => {
  type Played = ReturnType<typeof played>;
  const ends: Record<string, (upstream: Played) => void> = {
    answered: (upstream) => upstream.end(),
    failed: (upstream) => upstream.breaks(),
    client_gone: (upstream) => upstream.client.abort(),
  };
  for (const [kind, end] of Object.entries(ends)) {
    const upstream = played(new FakeClock());
    upstream.head();
    assert.equal(upstream.undecided.size, 1);
    end(upstream);
    assert.equal((await upstream.result).kind, kind);
    assert.equal(upstream.undecided.size, 0);
  }
});
