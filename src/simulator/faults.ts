/**
 * Turns a good reply into the faulty one that the behavior asks for: a list of steps that the writer executes without
 * checks.
 */

import type { Behavior, Fault } from "./behavior.ts";
import { type Frame, frameText, type StreamShape } from "./frame.ts";

/** Bytes to write; a stall until the client disconnects; or a TCP reset. The end of the list is a clean end. */
export type WriteStep =
  | { readonly kind: "bytes"; readonly bytes: Buffer }
  | { readonly kind: "stall" }
  | { readonly kind: "reset" };

/** Half a character, an unmatched brace and a zero byte: neither UTF-8 nor JSON nor an event. */
const GARBAGE = Buffer.from([0x64, 0x61, 0x74, 0x61, 0x3a, 0x20, 0x7b, 0x22, 0xc3, 0x00, 0xff, 0x0a, 0x0a]);

/** The largest filler event; a larger `hugeEvent` is reduced to this. V8 cannot hold a string of twice the size. */
export const HUGE_EVENT_BYTES_MAX = 256 * 1024 * 1024;
/** The most events without data. */
const EMPTY_EVENTS_MAX = 2_000_000;

/** The steps of a stream: frames with heartbeats and padding, cut at the fault. */
export function streamSteps(shape: StreamShape, behavior: Behavior): WriteStep[] {
  const fault = behavior.fault ?? {};
  const lineEnd = behavior.lineEnd ?? "\n";
  const frames = arrange(shape, behavior, fault);
  const { kept, tail } = cutStream(frames, shape, fault);
  const steps = kept.map((frame, number) =>
    bytesStep(Buffer.from(frameText(frame, lineEnd, shape.numbered ? number : undefined))),
  );
  if (fault.emptyEvents) {
    const count = Math.min(fault.emptyEvents, EMPTY_EVENTS_MAX);
    steps.splice(1, 0, bytesStep(Buffer.from(`data:${lineEnd}${lineEnd}`.repeat(count))));
  }
  return [...steps, ...tail];
}

/** The steps of a whole body; faults that count events happen at half of it. */
export function wholeSteps(body: Buffer, fault: Fault = {}): WriteStep[] {
  const half = bytesStep(body.subarray(0, body.length >> 1));
  if (fault.stallAfterEvents !== undefined) return [half, { kind: "stall" }];
  if (fault.resetAfterEvents !== undefined) return [half, { kind: "reset" }];
  if (fault.endAfterEvents !== undefined || fault.noTerminal) return [half];
  if (fault.garbageAfterEvents !== undefined) return [half, bytesStep(garbageBytes(fault.garbageAfterEvents))];
  return [bytesStep(body)];
}

/** Splits everything that is written into pieces of `size` bytes; the rest is written before a stall and at the end. */
export function recut(steps: readonly WriteStep[], size: number): WriteStep[] {
  const out: WriteStep[] = [];
  let carried: Buffer = Buffer.alloc(0);
  const flush = () => {
    if (carried.length > 0) out.push(bytesStep(carried));
    carried = Buffer.alloc(0);
  };
  for (const step of steps) {
    if (step.kind !== "bytes") {
      flush();
      out.push(step);
      continue;
    }
    carried = Buffer.concat([carried, step.bytes]);
    let at = 0;
    for (; carried.length - at >= size; at += size) out.push(bytesStep(carried.subarray(at, at + size)));
    carried = carried.subarray(at);
  }
  flush();
  return out;
}

function bytesStep(bytes: Buffer): WriteStep {
  return { kind: "bytes", bytes };
}

function arrange(shape: StreamShape, behavior: Behavior, fault: Fault): readonly Frame[] {
  const dictated = behavior.frames?.map(({ event, data }) => ({
    ...(event === undefined ? {} : { event }),
    ...(typeof data === "string" ? { text: data } : { json: data as Readonly<Record<string, unknown>> }),
  }));
  const frames: readonly Frame[] = dictated ?? shape.frames;
  const ended = fault.noTerminal ? frames.slice(0, -1) : frames;
  const every = behavior.pings;
  const beating = every
    ? ended.flatMap((frame, i) => ((i + 1) % every === 0 && i < ended.length - 1 ? [frame, shape.ping()] : [frame]))
    : ended;
  if (!fault.hugeEvent) return beating;
  return [...beating.slice(0, 1), shape.padding(Math.min(fault.hugeEvent, HUGE_EVENT_BYTES_MAX)), ...beating.slice(1)];
}

function cutStream(
  frames: readonly Frame[],
  shape: StreamShape,
  fault: Fault,
): { kept: readonly Frame[]; tail: readonly WriteStep[] } {
  const { errorEventAfter, garbageAfterEvents } = fault;
  if (errorEventAfter)
    return { kept: [...frames.slice(0, errorEventAfter.n), ...shape.failure(errorEventAfter)], tail: [] };
  if (fault.stallAfterEvents !== undefined)
    return { kept: frames.slice(0, fault.stallAfterEvents), tail: [{ kind: "stall" }] };
  if (fault.resetAfterEvents !== undefined)
    return { kept: frames.slice(0, fault.resetAfterEvents), tail: [{ kind: "reset" }] };
  if (fault.endAfterEvents !== undefined) return { kept: frames.slice(0, fault.endAfterEvents), tail: [] };
  if (garbageAfterEvents !== undefined) {
    const n = typeof garbageAfterEvents === "number" ? garbageAfterEvents : garbageAfterEvents.n;
    return { kept: frames.slice(0, n), tail: [bytesStep(garbageBytes(garbageAfterEvents))] };
  }
  return { kept: frames, tail: [] };
}

function garbageBytes(garbage: NonNullable<Fault["garbageAfterEvents"]>): Buffer {
  if (typeof garbage === "number") return GARBAGE;
  if (garbage.base64 !== undefined) return Buffer.from(garbage.base64, "base64");
  return garbage.text === undefined ? GARBAGE : Buffer.from(garbage.text);
}
