/**
 * Reads a request's body once into one buffer, up to a limit (docs/failure-model.md rows 53 to 55, D5 and D7). A fault
 * of the body is returned, not thrown, because a bad key must be answered before a bad body.
 */
import assert from "node:assert/strict";
import type { IncomingMessage } from "node:http";
import { isRefusal, type Refusal, refusal } from "../values/errors.ts";
import { mediaTypeOf } from "../wire/header.ts";
import { framing } from "./framing.ts";
import type { RequestHeaders } from "./headers.ts";

const FIRST_BUFFER_BYTES = 16_384;
const NO_BYTES = new Uint8Array(0);

/**
 * This many bytes of a body are read before the key is checked: what is admitted in one round trip to the store
 * (ARCHITECTURE.md promise 5). An unwanted body of up to this size is read and discarded, to keep the connection.
 */
export const UNPROVEN_BYTES_MAX = 65_536;

/**
 * A chunked body may have so many chunks, and one more for so many bytes. Each costs 1.2 us whatever its size: a million of one
 * byte take as long as 30 MB in large ones take to be read and parsed. Python's `iterencode` writes each name, value and comma
 * by itself, so the number of chunks of an honest body follows its values, not its bytes.
 */
const CHUNKS_MAX = 65_536;
const BYTES_PER_CHUNK = 16;

/** Called before more than UNPROVEN_BYTES_MAX are read. @returns the reason to refuse the rest. */
export type BodyGate = () => Promise<Refusal | undefined>;

/** Memory of the process that a body beyond UNPROVEN_BYTES_MAX uses, shared with other bodies. */
export interface BodyRoom {
  /** @param bytes total that the body uses from now on. @returns a refusal if there is no room for it. */
  hold(bytes: number): Refusal | undefined;
  /** Releases all of it. */
  free(): void;
}

function declaredBytes(headers: RequestHeaders): number | undefined {
  if (headers.has("transfer-encoding")) return undefined;
  return Number(headers.get("content-length") ?? 0);
}

export class RequestBody {
  /** The content-length; undefined when the body is chunked. */
  readonly declaredBytes: number | undefined;
  readonly #req: IncomingMessage;
  readonly #headers: RequestHeaders;
  readonly #bytesMax: number;
  readonly #sendContinue: () => void;
  #onFault: ((fault: Refusal) => void)[] = [];
  #fault: Refusal | undefined;
  #result: Promise<Uint8Array | Refusal> | undefined;
  #isForgotten = false;
  #room: BodyRoom | undefined;

  /** @param sendContinue tells a client that waits with its body (`Expect: 100-continue`) to send it. */
  constructor(req: IncomingMessage, headers: RequestHeaders, bytesMax: number, sendContinue: () => void) {
    this.declaredBytes = declaredBytes(headers);
    this.#req = req;
    this.#headers = headers;
    this.#bytesMax = bytesMax;
    this.#sendContinue = sendContinue;
    // A socket error while there is no reader must not become an uncaught exception (row 78).
    req.on("error", () => this.fail(framing("The connection broke off before the end of the body.")));
    req.on("close", () => {
      if (!req.complete) this.fail(framing("The connection ended before the body did."));
    });
  }

  /**
   * Reads the body; every call gives the same result.
   * @param gate called once, before more than UNPROVEN_BYTES_MAX are read. If the headers declare more, it is called
   *   before anything is read. Until it resolves, nothing more is read and no `100 Continue` is sent.
   * @param room reserved once the gate has accepted the body and before the buffer exceeds UNPROVEN_BYTES_MAX: for the
   *   declared length, or else as the buffer grows. Released by `forget`, or with a refusal.
   * @returns the bytes, or a refusal: `body_too_large` (before reading if the headers show it),
   *   `unsupported_media_type`, `request_timeout`, `framing`, or what the gate or the room refused with.
   */
  read(gate?: BodyGate, room?: BodyRoom): Promise<Uint8Array | Refusal> {
    assert(!this.#isForgotten, "a body is not read again after it was forgotten");
    this.#room ??= room;
    this.#result ??= this.#read(gate);
    return this.#result;
  }

  /**
   * Releases the bytes. Nothing may read them afterwards. An answer can run much longer than its request's body is
   * needed.
   */
  forget(): void {
    this.#isForgotten = true;
    this.#result = undefined;
    this.#room?.free();
  }

  /** Ends the reading with a fault of the connection; no effect once the body is complete. */
  fail(fault: Refusal): void {
    if (this.#fault !== undefined) return;
    this.#fault = fault;
    for (const listener of this.#onFault.splice(0)) listener(fault);
  }

  /**
   * Calls the listener once if the connection fails before the body is complete, at once if it already has. For callers
   * that stream the body.
   */
  onFault(listener: (fault: Refusal) => void): void {
    if (this.#fault === undefined) this.#onFault.push(listener);
    else listener(this.#fault);
  }

  /** Tells a client that waits with its body to send it; `read` does this itself. */
  askForIt(): void {
    this.#sendContinue();
  }

  #read(gate: BodyGate | undefined): Promise<Uint8Array | Refusal> {
    const byHead = this.#fault ?? this.#refusedByHead();
    if (byHead) return Promise.resolve(byHead);
    const { declaredBytes = 0 } = this;
    if (declaredBytes > UNPROVEN_BYTES_MAX) return this.#readLarge(declaredBytes, gate);
    return this.#collected(gate);
  }

  async #readLarge(declaredBytes: number, gate: BodyGate | undefined): Promise<Uint8Array | Refusal> {
    const unwanted = await gate?.();
    // The connection may have failed in the meantime.
    return unwanted ?? this.#fault ?? this.#room?.hold(declaredBytes) ?? this.#collected(undefined);
  }

  #collected(gate: BodyGate | undefined): Promise<Uint8Array | Refusal> {
    const { promise, resolve, reject } = Promise.withResolvers<Uint8Array | Refusal>();
    const collector = new BodyBuffer(this.#bytesMax, this.declaredBytes);
    const settle = (result: Uint8Array | Refusal) => {
      // The listener would keep the bytes in memory for as long as it is in the list.
      this.#onFault = this.#onFault.filter((listener) => listener !== settle);
      this.#req.off("data", onData);
      this.#req.off("end", onEnd);
      if (isRefusal(result)) this.#room?.free();
      resolve(result);
    };
    let unasked = gate;
    let isAsking = false;
    let isWhole = false;
    let chunks = 0;
    const held = (bytes: number) => (bytes > UNPROVEN_BYTES_MAX ? this.#room?.hold(bytes) : undefined);
    const onData = (chunk: Uint8Array) => {
      if (collector.length + chunk.length > this.#bytesMax) return settle(this.#tooLarge());
      const isTooFine = (++chunks - CHUNKS_MAX) * BYTES_PER_CHUNK > collector.length;
      if (isTooFine && this.declaredBytes === undefined) return settle(inTooManyChunks());
      // Memory is reserved per account, and the account is not known before the gate has checked the key.
      const noRoom = unasked ? undefined : held(collector.sizeWith(chunk.length));
      if (noRoom) return settle(noRoom);
      collector.add(chunk);
      if (!unasked || collector.length <= UNPROVEN_BYTES_MAX) return;
      this.#req.pause();
      isAsking = true;
      unasked().then((unwanted) => {
        isAsking = false;
        // The connection may have failed in the meantime: then nothing would release a later reservation.
        const refused = unwanted ?? this.#fault ?? held(collector.sizeWith(0));
        if (refused) settle(refused);
        else if (isWhole) settle(collector.bytes());
        else this.#req.resume();
      }, reject);
      unasked = undefined;
    };
    // If the whole body had arrived before it was read, Node emits `end` although the request is paused.
    const onEnd = () => {
      if (isAsking) isWhole = true;
      else settle(collector.bytes());
    };
    this.onFault(settle);
    this.#req.on("data", onData);
    this.#req.on("end", onEnd);
    this.#sendContinue();
    return promise;
  }

  #refusedByHead(): Refusal | undefined {
    if ((this.declaredBytes ?? 0) > this.#bytesMax) return this.#tooLarge();
    const type = this.#headers.get("content-type");
    if (type === undefined) return mediaType("The content-type header is missing.");
    if (!isJsonInUtf8(type)) return mediaType("The content-type is not supported.");
    const coding = this.#headers.get("content-encoding");
    if (coding !== undefined && coding.toLowerCase() !== "identity")
      return mediaType("The content-encoding is not supported.");
    return undefined;
  }

  #tooLarge(): Refusal {
    return refusal("body_too_large", { detail: `At most ${this.#bytesMax} bytes are accepted.` });
  }
}

/**
 * One buffer that grows by doubling. With a list of chunks, a client that sends one-byte chunks would make us hold
 * hundreds of bytes for each byte. With a buffer of the declared length, a client could reserve memory that it never
 * fills.
 */
class BodyBuffer {
  readonly #bytesMax: number;
  readonly #declared: number | undefined;
  #buffer: Uint8Array = NO_BYTES;
  #length = 0;

  constructor(bytesMax: number, declared: number | undefined) {
    this.#bytesMax = bytesMax;
    this.#declared = declared;
  }

  get length(): number {
    return this.#length;
  }

  /** Size of the buffer after this many more bytes are added. */
  sizeWith(more: number): number {
    const least = this.#length + more;
    if (least <= this.#buffer.length) return this.#buffer.length;
    const most = this.#declared ?? this.#bytesMax;
    const wanted = this.#buffer.length === 0 ? FIRST_BUFFER_BYTES : this.#buffer.length * 2;
    return Math.max(least, Math.min(wanted, most));
  }

  /** @param chunk must not exceed the limit. */
  add(chunk: Uint8Array): void {
    const length = this.#length + chunk.length;
    // Most bodies arrive in one chunk, which nothing else references.
    if (this.#length === 0 && length === this.#declared) this.#buffer = chunk;
    else {
      if (length > this.#buffer.length) this.#grow(this.sizeWith(chunk.length));
      this.#buffer.set(chunk, this.#length);
    }
    this.#length = length;
  }

  bytes(): Uint8Array {
    return this.#buffer.length === this.#length ? this.#buffer : this.#buffer.subarray(0, this.#length);
  }

  #grow(size: number): void {
    const larger = Buffer.allocUnsafeSlow(size);
    larger.set(this.#buffer.subarray(0, this.#length));
    this.#buffer = larger;
  }
}

function inTooManyChunks(): Refusal {
  const detail = `It came in more than ${CHUNKS_MAX} chunks, and in more than one for each ${BYTES_PER_CHUNK} bytes.`;
  return refusal("body_too_large", { detail, remedy: "Send the body with its length, or in larger chunks." });
}

/** The only parameter that matters is the charset, and JSON allows only UTF-8 (RFC 8259 sections 8.1, 11). */
function isJsonInUtf8(contentType: string): boolean {
  // What most clients send: 0.02 us instead of 0.4.
  if (contentType === "application/json") return true;
  const media = mediaTypeOf(contentType);
  const charset = media?.parameters.get("charset")?.toLowerCase() ?? "utf-8";
  return media?.type === "application/json" && (charset === "utf-8" || charset === "utf8");
}

function mediaType(detail: string): Refusal {
  return refusal("unsupported_media_type", { detail });
}
