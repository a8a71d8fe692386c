/**
 * A request's body, read once into one buffer under a limit (docs/failure-model.md rows 53 to 55, D5 and D7). A fault
 * of it is returned and not thrown, because a bad key is answered before a bad body.
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
 * So much of a body is read before anybody has asked whether its key is good: what is admitted in one round trip to the
 * store (ARCHITECTURE.md promise 5). It is also what is read and thrown away, to keep the connection, of a body that
 * nobody wants.
 */
export const UNPROVEN_BYTES_MAX = 65_536;

/** Asked before more than that is read. @returns why the rest is not wanted. */
export type BodyGate = () => Promise<Refusal | undefined>;

/** What a body beyond UNPROVEN_BYTES_MAX takes up of the process's memory, beside the bodies of others. */
export interface BodyRoom {
  /** @param bytes that it takes up from now on, in all. @returns why there is no room for so many. */
  hold(bytes: number): Refusal | undefined;
  /** Gives all of it back. */
  free(): void;
}

function declaredBytes(headers: RequestHeaders): number | undefined {
  if (headers.has("transfer-encoding")) return undefined;
  return Number(headers.get("content-length") ?? 0);
}

export class RequestBody {
  /** The bytes that the head promises; undefined when the body is chunked. */
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

  /** @param sendContinue asks a client that waits with its body (`Expect: 100-continue`) to go on. */
  constructor(req: IncomingMessage, headers: RequestHeaders, bytesMax: number, sendContinue: () => void) {
    this.declaredBytes = declaredBytes(headers);
    this.#req = req;
    this.#headers = headers;
    this.#bytesMax = bytesMax;
    this.#sendContinue = sendContinue;
    // A socket error while nobody reads must not become an uncaught one (row 78).
    req.on("error", () => this.fail(framing("The connection broke off before the end of the body.")));
    req.on("close", () => {
      if (!req.complete) this.fail(framing("The connection ended before the body did."));
    });
  }

  /**
   * Reads the body; every call gives the same result.
   * @param gate asked once, before more than UNPROVEN_BYTES_MAX are read: ahead of all when the head says that there are
   *   more. Nothing is read, and no `100 Continue` sent, while it thinks.
   * @param room held, once the gate wants the body, before it is larger than UNPROVEN_BYTES_MAX: for all that the head promises, or
   *   else as it grows. Given back by `forget`, or with a refusal.
   * @returns the bytes, or a refusal: `body_too_large` (before reading when the head tells), `unsupported_media_type`,
   * `request_timeout`, `framing`, the gate's and the room's own.
   */
  read(gate?: BodyGate, room?: BodyRoom): Promise<Uint8Array | Refusal> {
    assert(!this.#isForgotten, "a body is not read again after it was forgotten");
    this.#room ??= room;
    this.#result ??= this.#read(gate);
    return this.#result;
  }

  /** Lets go of the bytes. Nobody may read them from here on: an answer can take very much longer than they are needed. */
  forget(): void {
    this.#isForgotten = true;
    this.#result = undefined;
    this.#room?.free();
  }

  /** Ends the reading with a fault that the connection had; without effect once the body is whole. */
  fail(fault: Refusal): void {
    if (this.#fault !== undefined) return;
    this.#fault = fault;
    for (const listener of this.#onFault.splice(0)) listener(fault);
  }

  /** Called once when the connection breaks the body off, or at once if it has; for those who read it piece by piece. */
  onFault(listener: (fault: Refusal) => void): void {
    if (this.#fault === undefined) this.#onFault.push(listener);
    else listener(this.#fault);
  }

  /** Asks a client that waits with its body to go on; `read` does so itself. */
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
    // The connection may have failed meanwhile.
    return unwanted ?? this.#fault ?? this.#room?.hold(declaredBytes) ?? this.#collected(undefined);
  }

  #collected(gate: BodyGate | undefined): Promise<Uint8Array | Refusal> {
    const { promise, resolve, reject } = Promise.withResolvers<Uint8Array | Refusal>();
    const collector = new BodyBuffer(this.#bytesMax, this.declaredBytes);
    const settle = (result: Uint8Array | Refusal) => {
      // It would keep the bytes for as long as the list has it.
      this.#onFault = this.#onFault.filter((listener) => listener !== settle);
      this.#req.off("data", onData);
      this.#req.off("end", onEnd);
      if (isRefusal(result)) this.#room?.free();
      resolve(result);
    };
    let unasked = gate;
    let isAsking = false;
    let isWhole = false;
    const held = (bytes: number) => (bytes > UNPROVEN_BYTES_MAX ? this.#room?.hold(bytes) : undefined);
    const onData = (chunk: Uint8Array) => {
      if (collector.length + chunk.length > this.#bytesMax) return settle(this.#tooLarge());
      // Whose body it is says a key, which nobody has asked about yet.
      const noRoom = unasked ? undefined : held(collector.sizeWith(chunk.length));
      if (noRoom) return settle(noRoom);
      collector.add(chunk);
      if (!unasked || collector.length <= UNPROVEN_BYTES_MAX) return;
      this.#req.pause();
      isAsking = true;
      unasked().then((unwanted) => {
        isAsking = false;
        // The connection may have failed meanwhile: nobody would give back what is held from here on.
        const refused = unwanted ?? this.#fault ?? held(collector.sizeWith(0));
        if (refused) settle(refused);
        else if (isWhole) settle(collector.bytes());
        else this.#req.resume();
      }, reject);
      unasked = undefined;
    };
    // Of a body that had come before it was read, the end is told although it is paused.
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
    if (type === undefined) return mediaType("There is no content-type.");
    if (!isJsonInUtf8(type)) return mediaType("The content-type is another one.");
    const coding = this.#headers.get("content-encoding");
    if (coding !== undefined && coding.toLowerCase() !== "identity")
      return mediaType("The content-encoding is not read.");
    return undefined;
  }

  #tooLarge(): Refusal {
    return refusal("body_too_large", { detail: `At most ${this.#bytesMax} bytes are read.` });
  }
}

/**
 * One buffer that grows by doubling. A list of chunks would let a sender of one-byte chunks make us hold hundreds of
 * bytes for each of his; a buffer of the declared length would let him reserve memory that he never fills.
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

  /** Bytes of the buffer once so many more are in it. */
  sizeWith(more: number): number {
    const least = this.#length + more;
    if (least <= this.#buffer.length) return this.#buffer.length;
    const most = this.#declared ?? this.#bytesMax;
    const wanted = this.#buffer.length === 0 ? FIRST_BUFFER_BYTES : this.#buffer.length * 2;
    return Math.max(least, Math.min(wanted, most));
  }

  /** @param chunk that does not go beyond the limit. */
  add(chunk: Uint8Array): void {
    const length = this.#length + chunk.length;
    // Most bodies come in one piece, which nobody else has.
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

/** No parameter but a charset changes what JSON is, and no charset but UTF-8 is JSON (RFC 8259 sections 8.1, 11). */
function isJsonInUtf8(contentType: string): boolean {
  // As most clients write it: 0.02 us for 0.4.
  if (contentType === "application/json") return true;
  const media = mediaTypeOf(contentType);
  const charset = media?.parameters.get("charset")?.toLowerCase() ?? "utf-8";
  return media?.type === "application/json" && (charset === "utf-8" || charset === "utf8");
}

function mediaType(detail: string): Refusal {
  return refusal("unsupported_media_type", { detail });
}
