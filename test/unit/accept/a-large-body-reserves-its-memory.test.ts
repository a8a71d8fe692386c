/**
 * docs/failure-model.md row D7: a body above 64 KiB is read only into memory that was reserved for it, and the memory
 * is released afterwards.
 */
import assert from "node:assert/strict";
import type { IncomingMessage } from "node:http";
import { Readable } from "node:stream";
import test from "node:test";
import { setImmediate } from "node:timers/promises";
import { type BodyGate, RequestBody, UNPROVEN_BYTES_MAX } from "../../../src/accept/body.ts";
import { RequestHeaders } from "../../../src/accept/headers.ts";
import { isRefusal, refusal } from "../../../src/values/errors.ts";

const PIECE = Buffer.alloc(16_384, "x");
const BYTES_MAX = 1_000_000;

interface Asked {
  readonly pieces: number;
  readonly isDeclared: boolean;
  readonly roomBytes?: number;
  readonly gate?: BodyGate;
}

/**
 * A request whose client sends as fast as it is read. It records when the gate is asked, when the body is requested,
 * and each change of the reserved memory.
 */
function reading({ pieces, isDeclared, roomBytes = BYTES_MAX, gate }: Asked) {
  let given = 0;
  const source = Object.assign(
    new Readable({
      highWaterMark: PIECE.length,
      read() {
        source.complete = given === pieces;
        this.push(given++ < pieces ? PIECE : null);
      },
    }),
    { complete: false },
  );
  const length = isDeclared ? ["content-length", `${pieces * PIECE.length}`] : ["transfer-encoding", "chunked"];
  const headers = new RequestHeaders([...length, "content-type", "application/json"]);
  const events: (string | number)[] = [];
  const body = new RequestBody(source as unknown as IncomingMessage, headers, BYTES_MAX, () =>
    events.push("asked for"),
  );
  let held = 0;
  const room = {
    hold(bytes: number) {
      if (bytes > roomBytes) return refusal("concurrency");
      if (bytes > held) events.push(bytes);
      held = Math.max(held, bytes);
      return undefined;
    },
    free() {
      if (held > 0) events.push(0);
      held = 0;
    },
  };
  const asked: BodyGate = async () => {
    events.push("gate");
    return await gate?.();
  };
  return { body, source, events, given: () => given, read: () => body.read(asked, room) };
}

test("a body with a declared length reserves all of it after the gate, before it is requested, until it is discarded", async () => {
  const { body, events, read } = reading({ pieces: 40, isDeclared: true });
  const bytes = await read();
  assert.ok(!isRefusal(bytes));
  assert.equal(bytes.length, 40 * PIECE.length);
  assert.deepEqual(events, ["gate", 40 * PIECE.length, "asked for"]);
  body.forget();
  assert.equal(events.at(-1), 0);
});

test("a body with a declared length that there is no memory for is neither requested nor read", async () => {
  const { events, read, given } = reading({ pieces: 40, isDeclared: true, roomBytes: 40 * PIECE.length - 1 });
  const refused = await read();
  assert.equal(isRefusal(refused) && refused.cause, "concurrency");
  assert.deepEqual(events, ["gate"]);
  assert.equal(given(), 0);
});

test("a body of unknown length reserves the size of its buffer from the gate on, at most the largest size of a body", async () => {
  const { events, read } = reading({ pieces: 60, isDeclared: false });
  assert.ok(!isRefusal(await read()));
  assert.deepEqual(events, ["asked for", "gate", 131_072, 262_144, 524_288, BYTES_MAX]);
});

test("a body of unknown length that ends with the piece that opened the gate reserves its buffer, too", async () => {
  const whole = reading({ pieces: 5, isDeclared: false });
  assert.ok(!isRefusal(await whole.read()));
  assert.deepEqual(whole.events, ["asked for", "gate", 131_072]);
  const short = reading({ pieces: 5, isDeclared: false, roomBytes: 131_071 });
  const refused = await short.read();
  assert.equal(isRefusal(refused) && refused.cause, "concurrency");
  const unknown = reading({ pieces: 5, isDeclared: false, gate: async () => refusal("unknown_key") });
  const unwanted = await unknown.read();
  assert.equal(isRefusal(unwanted) && unwanted.cause, "unknown_key");
});

test("a body of unknown length is refused when the memory runs out, and releases what it reserved", async () => {
  const { events, read } = reading({ pieces: 60, isDeclared: false, roomBytes: 300_000 });
  const refused = await read();
  assert.equal(isRefusal(refused) && refused.cause, "concurrency");
  assert.deepEqual(events, ["asked for", "gate", 131_072, 262_144, 0]);
});

test("an aborted body releases what it reserved, also while its key is looked up", async () => {
  const broken = reading({ pieces: 60, isDeclared: true });
  const found = broken.read();
  broken.source.once("data", () => broken.body.fail(refusal("framing")));
  assert.ok(isRefusal(await found));
  assert.deepEqual(broken.events, ["gate", 60 * PIECE.length, "asked for", 0]);
  const early = reading({
    pieces: 60,
    isDeclared: true,
    gate: async () => void early.body.fail(refusal("framing")),
  });
  assert.ok(isRefusal(await early.read()));
  assert.deepEqual(early.events, ["gate"]);
  const looked = Promise.withResolvers<undefined>();
  const chunked = reading({
    pieces: 60,
    isDeclared: false,
    gate: () => {
      chunked.body.fail(refusal("framing"));
      return looked.promise;
    },
  });
  assert.ok(isRefusal(await chunked.read()));
  chunked.body.forget();
  looked.resolve(undefined);
  await setImmediate();
  assert.deepEqual(chunked.events, ["asked for", "gate"], "nothing is held for a request that has ended");
});

test("a body with an unknown key and a small body reserve nothing", async () => {
  for (const isDeclared of [true, false]) {
    const unknown = reading({ pieces: 40, isDeclared, gate: async () => refusal("unknown_key") });
    assert.ok(isRefusal(await unknown.read()));
    const small = reading({ pieces: UNPROVEN_BYTES_MAX / PIECE.length, isDeclared });
    assert.ok(!isRefusal(await small.read()));
    for (const { events } of [unknown, small])
      assert.ok(
        events.every((one) => typeof one === "string"),
        `${events}`,
      );
  }
});
