/** docs/failure-model.md row D7: a body beyond 64 KiB is read only into memory that there is room for, which it gives back. */
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

/** A request whose client sends as fast as it is read. What is told is when the gate was asked, and what is held at each change. */
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
  const told: (string | number)[] = [];
  const body = new RequestBody(source as unknown as IncomingMessage, headers, BYTES_MAX, () => told.push("asked for"));
  let held = 0;
  const room = {
    hold(bytes: number) {
      if (bytes > roomBytes) return refusal("concurrency");
      if (bytes > held) told.push(bytes);
      held = Math.max(held, bytes);
      return undefined;
    },
    free() {
      if (held > 0) told.push(0);
      held = 0;
    },
  };
  const asked: BodyGate = async () => {
    told.push("gate");
    return await gate?.();
  };
  return { body, source, told, given: () => given, read: () => body.read(asked, room) };
}

test("a declared body holds all of it once its key is good, before it is asked for, and until it is let go of", async () => {
  const { body, told, read } = reading({ pieces: 40, isDeclared: true });
  const bytes = await read();
  assert.ok(!isRefusal(bytes));
  assert.equal(bytes.length, 40 * PIECE.length);
  assert.deepEqual(told, ["gate", 40 * PIECE.length, "asked for"]);
  body.forget();
  assert.equal(told.at(-1), 0);
});

test("a declared body that there is no room for is neither asked for nor read", async () => {
  const { told, read, given } = reading({ pieces: 40, isDeclared: true, roomBytes: 40 * PIECE.length - 1 });
  const refused = await read();
  assert.equal(isRefusal(refused) && refused.cause, "concurrency");
  assert.deepEqual(told, ["gate"]);
  assert.equal(given(), 0);
});

test("one of unknown length holds what its buffer has, from the gate on, and never more than a body may have", async () => {
  const { told, read } = reading({ pieces: 60, isDeclared: false });
  assert.ok(!isRefusal(await read()));
  assert.deepEqual(told, ["asked for", "gate", 131_072, 262_144, 524_288, BYTES_MAX]);
});

test("one of unknown length that ends with the piece that asked the gate holds its buffer all the same", async () => {
  const whole = reading({ pieces: 5, isDeclared: false });
  assert.ok(!isRefusal(await whole.read()));
  assert.deepEqual(whole.told, ["asked for", "gate", 131_072]);
  const short = reading({ pieces: 5, isDeclared: false, roomBytes: 131_071 });
  const refused = await short.read();
  assert.equal(isRefusal(refused) && refused.cause, "concurrency");
  const unknown = reading({ pieces: 5, isDeclared: false, gate: async () => refusal("unknown_key") });
  const unwanted = await unknown.read();
  assert.equal(isRefusal(unwanted) && unwanted.cause, "unknown_key");
});

test("one of unknown length that finds no more room ends there, and gives back what it had", async () => {
  const { told, read } = reading({ pieces: 60, isDeclared: false, roomBytes: 300_000 });
  const refused = await read();
  assert.equal(isRefusal(refused) && refused.cause, "concurrency");
  assert.deepEqual(told, ["asked for", "gate", 131_072, 262_144, 0]);
});

test("a body that breaks off gives back what it had, also while its key is looked up", async () => {
  const broken = reading({ pieces: 60, isDeclared: true });
  const found = broken.read();
  broken.source.once("data", () => broken.body.fail(refusal("framing")));
  assert.ok(isRefusal(await found));
  assert.deepEqual(broken.told, ["gate", 60 * PIECE.length, "asked for", 0]);
  const early = reading({
    pieces: 60,
    isDeclared: true,
    gate: async () => void early.body.fail(refusal("framing")),
  });
  assert.ok(isRefusal(await early.read()));
  assert.deepEqual(early.told, ["gate"]);
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
  assert.deepEqual(chunked.told, ["asked for", "gate"], "nothing is held for a request that is over");
});

test("a body of an unknown key, or a small one, holds nothing", async () => {
  for (const isDeclared of [true, false]) {
    const unknown = reading({ pieces: 40, isDeclared, gate: async () => refusal("unknown_key") });
    assert.ok(isRefusal(await unknown.read()));
    const small = reading({ pieces: UNPROVEN_BYTES_MAX / PIECE.length, isDeclared });
    assert.ok(!isRefusal(await small.read()));
    for (const { told } of [unknown, small])
      assert.ok(
        told.every((one) => typeof one === "string"),
        `${told}`,
      );
  }
});
