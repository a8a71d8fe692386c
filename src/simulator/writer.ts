/**
 * Executes steps on an HTTP answer: with delays, backpressure and optional compression, until the client disconnects.
 */

import type { ServerResponse } from "node:http";
import { setImmediate as nextTurn } from "node:timers/promises";
import { createBrotliCompress, createDeflate, createGzip, createZstdCompress } from "node:zlib";
import type { Clock } from "../values/time.ts";
import type { Fault, ReplyDelays } from "./behavior.ts";
import type { WriteStep } from "./faults.ts";

/** One answer in progress. */
export interface Link {
  readonly res: ServerResponse;
  readonly clock: Clock;
  /** Aborts when the connection is closed by either side. */
  readonly gone: AbortSignal;
  /** Cuts the connection with a TCP reset, and records that the simulator did it. */
  reset(): void;
}

/** Waits; returns early if the connection is closed. */
export function pause(link: Pick<Link, "clock" | "gone">, ms: number): Promise<void> {
  if (ms <= 0 || link.gone.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    const leave = () => {
      cancel();
      resolve();
    };
    const cancel = link.clock.after(ms, () => {
      link.gone.removeEventListener("abort", leave);
      resolve();
    });
    link.gone.addEventListener("abort", leave, { once: true });
  });
}

/** Waits until the connection is closed. */
export function untilGone(gone: AbortSignal): Promise<void> {
  if (gone.aborted) return Promise.resolve();
  return new Promise((resolve) => gone.addEventListener("abort", () => resolve(), { once: true }));
}

/**
 * Writes the steps after the headers. With `apart`, every piece gets its own turn of the event loop, so that it reaches
 * the reader as a separate chunk.
 */
export async function writeSteps(
  link: Link,
  steps: readonly WriteStep[],
  { pace, compress, apart }: { pace: ReplyDelays; compress?: Fault["compress"]; apart: boolean },
): Promise<void> {
  const outlet = compress ? compressedOutlet(link, compress) : plainOutlet(link);
  let waitMs = pace.firstDelayMs;
  for (const step of steps) {
    if (link.gone.aborted) return;
    if (step.kind === "stall") return untilGone(link.gone);
    if (step.kind === "reset") {
      await nextTurn();
      return link.reset();
    }
    await pause(link, waitMs);
    waitMs = pace.betweenMs;
    if (link.gone.aborted) return;
    await outlet.write(step.bytes);
    if (apart) await nextTurn();
  }
  if (!link.gone.aborted) await outlet.end();
}

interface Outlet {
  write(bytes: Buffer): Promise<void>;
  end(): Promise<void>;
}

function plainOutlet(link: Link): Outlet {
  return {
    write: (bytes) => (bytes.length === 0 ? Promise.resolve() : flushed(link, bytes)),
    async end() {
      link.res.end();
    },
  };
}

/** Resolves when the kernel has the bytes, so that a following reset does not overtake them. */
function flushed(link: Link, bytes: Buffer): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      link.gone.removeEventListener("abort", done);
      resolve();
    };
    link.gone.addEventListener("abort", done);
    link.res.write(bytes, done);
  });
}

const COMPRESSORS = {
  gzip: createGzip,
  br: createBrotliCompress,
  deflate: createDeflate,
  zstd: createZstdCompress,
} as const;

/** Flushes every write through the compressor, so that the answer still streams. */
function compressedOutlet(link: Link, encoding: NonNullable<Fault["compress"]>): Outlet {
  const compressor = COMPRESSORS[encoding]();
  compressor.on("data", (bytes: Buffer) => link.res.write(bytes));
  return {
    write: (bytes) =>
      new Promise((resolve) => {
        compressor.write(bytes);
        compressor.flush(() => resolve());
      }),
    end: () =>
      new Promise((resolve) => {
        compressor.once("end", () => {
          link.res.end();
          resolve();
        });
        compressor.end();
      }),
  };
}
