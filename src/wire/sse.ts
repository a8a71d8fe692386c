/**
 * Server-sent events (WHATWG HTML, section 9.2): reads them from bytes, however these are split (ARCHITECTURE.md
 * promise 7), and writes them.
 */
import assert from "node:assert/strict";
import { asBuffer } from "./utf8.ts";

/** One frame of a stream: the bytes up to and including a blank line. */
export interface SseEvent {
  /** The exact bytes of the frame with its blank line; comments, and lone blank lines, are frames too. */
  readonly raw: Uint8Array;
  /** The last `event:` field; "" if there is none. */
  readonly event: string;
  /** The `data:` lines joined by a line feed; undefined if the frame has no data line. */
  readonly data: Uint8Array | undefined;
}

/**
 * The default maximum size of a frame (docs/failure-model.md rows 65 and C5). The last event of a responses stream
 * repeats the whole reply; a larger one would block the event loop for too long.
 */
export const SSE_EVENT_BYTES_MAX = 4 * 1_024 * 1_024;

const LF = 0x0a;
const CR = 0x0d;
const SPACE = 0x20;
const COLON = 0x3a;
const BOM: readonly number[] = [0xef, 0xbb, 0xbf];
const EMPTY = Buffer.alloc(0);
const HELD_BYTES_MIN = 1_024;

/**
 * Splits a byte stream into frames in linear time (row 65). Each byte is searched once, when it arrives, and an
 * unfinished frame waits in one growing buffer, so a million one-byte chunks cost no more than their bytes. The
 * returned frames are views of the chunks: a chunk must not be modified afterwards.
 */
export class SseReader {
  readonly #eventBytesMax: number;
  /** The bytes of the unfinished frame from earlier chunks. */
  #held: Buffer = EMPTY;
  #heldBytes = 0;
  /** Whether the current line has no byte yet. */
  #lineEmpty = true;
  /** Whether the last byte was a CR that may be followed by an LF. */
  #afterCr = false;
  /**
   * Number of bytes of a leading byte order mark seen so far; its full length once it is known whether there is one.
   */
  #bomBytes = 0;
  #firstFrame = true;
  #overflowed = false;
  /** The current chunk, the position of its next byte, and the start of its unfinished frame. */
  #chunk: Buffer = EMPTY;
  #at = 0;
  #frameStart = 0;
  /** Whether the chunk has a CR; undefined if not checked yet. */
  #hasCr: boolean | undefined = false;

  /** @param eventBytesMax the maximum size of a frame, including its blank line. */
  constructor(eventBytesMax: number = SSE_EVENT_BYTES_MAX) {
    this.#eventBytesMax = eventBytesMax;
  }

  /** True once a frame has exceeded the limit; from then on, nothing more is returned. */
  get overflowed(): boolean {
    return this.#overflowed;
  }

  /** Adds bytes and returns the frames that they complete. A frame that ends in CR waits for the byte after it. */
  push(chunk: Uint8Array): SseEvent[] {
    const events: SseEvent[] = [];
    this.feed(chunk);
    for (let event = this.next(); event; event = this.next()) events.push(event);
    return events;
  }

  /** Adds bytes. All earlier frames must have been read with `next`. */
  feed(chunk: Uint8Array): void {
    if (this.#overflowed) return;
    this.#chunk = asBuffer(chunk);
    this.#hasCr = undefined;
    this.#frameStart = 0;
    this.#at = this.#skipBom(this.#chunk);
  }

  /**
   * For a caller that recognizes frames by their bytes and consumes them itself.
   * @returns the current chunk if a frame begins at `at`; undefined inside a frame, before the first frame, or if
   *   nothing is left.
   */
  get between(): Buffer | undefined {
    const isBetween = this.#heldBytes === 0 && this.#lineEmpty && !this.#firstFrame && this.#frameStart === this.#at;
    return isBetween && this.#at < this.#chunk.length ? this.#chunk : undefined;
  }

  /** The position of the next byte in the current chunk. */
  get at(): number {
    return this.#at;
  }

  /** The caller has consumed the frames up to here. */
  skipTo(end: number): void {
    this.#at = end;
    this.#frameStart = end;
  }

  /** The next complete frame; undefined if more bytes are needed. */
  next(): SseEvent | undefined {
    const bytes = this.#chunk;
    const length = bytes.length;
    let i = this.#at;
    while (i < length) {
      let lineEnded = false;
      if (this.#afterCr) {
        if (bytes[i] === LF) i++;
        this.#afterCr = false;
        lineEnded = true;
      } else if (bytes[i] === LF) {
        i++;
        lineEnded = true;
      } else if (bytes[i] === CR) {
        i++;
        this.#afterCr = true;
      } else {
        this.#hasCr ??= bytes.includes(CR);
        i = endOfLine(bytes, i + 1, this.#hasCr);
        this.#lineEmpty = false;
      }
      if (!lineEnded) continue;
      const isBlank = this.#lineEmpty;
      this.#lineEmpty = true;
      if (!isBlank) continue;
      const event = this.#finish(bytes.subarray(this.#frameStart, i));
      this.#at = i;
      this.#frameStart = i;
      if (!event) this.#chunk = EMPTY;
      return event;
    }
    if (this.#frameStart < length) this.#hold(bytes.subarray(this.#frameStart));
    this.#chunk = EMPTY;
    this.#at = 0;
    this.#frameStart = 0;
    return undefined;
  }

  /**
   * The stream has ended. The rest is returned as a last frame even if its blank line, or the end of its last line, is
   * missing: real upstreams end with `data: [DONE]` and nothing after it.
   */
  end(): SseEvent[] {
    if (this.#overflowed || this.#heldBytes === 0) return [];
    this.#afterCr = false;
    this.#lineEmpty = true;
    const event = this.#finish(EMPTY);
    return event ? [event] : [];
  }

  /** The position after the part of a byte order mark in this chunk; the mark is not part of a line. */
  #skipBom(bytes: Buffer): number {
    let i = 0;
    while (this.#bomBytes < BOM.length && i < bytes.length) {
      if (bytes[i] !== BOM[this.#bomBytes]) {
        if (this.#bomBytes > 0) this.#lineEmpty = false;
        this.#bomBytes = BOM.length;
        break;
      }
      this.#bomBytes++;
      i++;
    }
    return i;
  }

  /** Builds the frame from the buffered bytes and `rest`; undefined if it is too large. */
  #finish(rest: Buffer): SseEvent | undefined {
    if (this.#heldBytes > 0) {
      this.#hold(rest);
      if (this.#overflowed) return undefined;
    } else if (rest.length > this.#eventBytesMax) {
      this.#overflow();
      return undefined;
    }
    const raw = this.#heldBytes > 0 ? this.#held.subarray(0, this.#heldBytes) : rest;
    this.#held = EMPTY;
    this.#heldBytes = 0;
    const hasBom = this.#firstFrame && BOM.every((byte, i) => raw[i] === byte);
    this.#firstFrame = false;
    return parseFrame(raw, hasBom ? BOM.length : 0);
  }

  /** Appends bytes to the buffer. Its size doubles, so each byte is copied a bounded number of times. */
  #hold(bytes: Buffer): void {
    if (bytes.length === 0) return;
    const needed = this.#heldBytes + bytes.length;
    if (needed > this.#eventBytesMax) {
      this.#overflow();
      return;
    }
    if (needed > this.#held.length) {
      const size = Math.min(this.#eventBytesMax, Math.max(needed, 2 * this.#held.length, HELD_BYTES_MIN));
      const grown = Buffer.allocUnsafe(size);
      grown.set(this.#held.subarray(0, this.#heldBytes));
      this.#held = grown;
    }
    this.#held.set(bytes, this.#heldBytes);
    this.#heldBytes = needed;
  }

  #overflow(): void {
    this.#overflowed = true;
    this.#held = EMPTY;
    this.#heldBytes = 0;
  }
}

/**
 * The position of the first CR or LF from `at` on, or the length. Hardly any upstream sends a CR. Without one, this
 * uses the runtime's own search, which is two to three times as fast as a loop.
 */
function endOfLine(bytes: Buffer, at: number, hasCr: boolean): number {
  if (!hasCr) {
    const end = bytes.indexOf(LF, at);
    return end < 0 ? bytes.length : end;
  }
  let i = at;
  while (i < bytes.length && bytes[i] !== LF && bytes[i] !== CR) i++;
  return i;
}

/** Reads the fields of a whole frame; `id`, `retry`, unknown fields and comments are not used. */
function parseFrame(raw: Buffer, from: number): SseEvent {
  let event = "";
  let data: Buffer | undefined;
  let further: Buffer[] | undefined;
  const hasCr = raw.includes(CR);
  let i = from;
  while (i < raw.length) {
    const end = endOfLine(raw, i, hasCr);
    if (isField(raw, i, end, "data")) {
      const value = fieldValue(raw, i + 4, end);
      if (data === undefined) data = value;
      else {
        further ??= [data];
        further.push(LINE_FEED, value);
      }
    } else if (isField(raw, i, end, "event")) {
      event = fieldValue(raw, i + 5, end).toString("utf8");
    }
    i = end + 1;
  }
  return { raw, event, data: further ? Buffer.concat(further) : data };
}

const LINE_FEED = Buffer.from("\n");

/** Whether the line in [start, end) is the field `name`, with or without a colon after it. */
function isField(raw: Buffer, start: number, end: number, name: string): boolean {
  const nameEnd = start + name.length;
  if (nameEnd > end || (nameEnd < end && raw[nameEnd] !== COLON)) return false;
  for (let i = 0; i < name.length; i++) if (raw[start + i] !== name.charCodeAt(i)) return false;
  return true;
}

/** A field's value: what follows the colon at `colon`, without one leading space; empty if there is no colon. */
function fieldValue(raw: Buffer, colon: number, end: number): Buffer {
  const start = raw[colon + 1] === SPACE ? colon + 2 : colon + 1;
  return start < end ? raw.subarray(start, end) : EMPTY;
}

/**
 * Writes one frame.
 * @param data JSON text, or `[DONE]`: no line ends, because they would forge fields (row 67).
 * @throws AssertionError if data or event has a line end: a defect of ours, never caused by input.
 */
export function sseFrame(data: string, event?: string): Uint8Array {
  assert(isOneLine(data), "the data of a frame must be one line");
  if (event === undefined) return Buffer.from(`data: ${data}\n\n`);
  assert(isOneLine(event), "the name of an event must be one line");
  return Buffer.from(`event: ${event}\ndata: ${data}\n\n`);
}

/**
 * Writes one frame of an upstream's JSON after members were changed. If it came in several `data` lines, it becomes
 * one: in JSON, a line end is white space.
 */
export function jsonFrame(json: Uint8Array, event?: string): Uint8Array {
  return sseFrame(Buffer.from(json).toString().replaceAll("\n", " "), event);
}

function isOneLine(text: string): boolean {
  return !text.includes("\n") && !text.includes("\r");
}
