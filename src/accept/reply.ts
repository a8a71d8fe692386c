/**
 * The answer to one request, with backpressure. Only this file knows whether the first byte has been sent: after that,
 * there is no second head (asserted). It also detects that a client has disconnected.
 *
 * A client counts as disconnected (`gone`) when its side of the connection has ended in any way (docs/failure-model.md
 * rows D1 and D2): half-close, FIN or RST. A FIN is all that a closing client, nginx or Envoy ever shows. To wait for
 * the reset that a later write would cause would keep the upstream working without a reader.
 */
import assert from "node:assert/strict";
import type { ServerResponse } from "node:http";
import { PROTOCOLS, type Protocol } from "../values/protocol.ts";
import { printRequestId, type RequestId } from "../values/request-id.ts";
import { asBuffer } from "../wire/utf8.ts";
import type { HttpLimits } from "./http-limits.ts";

/** Names in lowercase. */
export type ReplyHeaders = Readonly<Record<string, string>>;

/** What a reply needs to know about the request that it answers. */
export interface ReplyContext {
  /** As in `x-request-id`. */
  readonly requestId: string;
  /** The id that the trusted front has given to the request. */
  readonly frontRequest: string | undefined;
  /**
   * Headers of every answer to this request; headers given with an answer override them. The reply owns this object and
   * adds to it.
   */
  readonly headers: Record<string, string>;
  /** Whether the listener wants the connection closed after the answer (drain). */
  readonly mustClose: () => boolean;
  /** Whether so much of the request is unread that the connection cannot be reused. */
  readonly bodyPending: () => boolean;
  /** Called once, when nothing of the answer can be sent any more. */
  readonly closed: () => void;
  readonly limits: Pick<HttpLimits, "lingerMs" | "lingerBytesMax" | "writeStallMs">;
}

/** The headers of every answer (docs/errors.md), and the request id as printed in them. */
export function standardHeaders(
  id: RequestId,
  protocol: Protocol,
): { headers: Record<string, string>; requestId: string } {
  const requestId = printRequestId(id);
  const repeated = PROTOCOLS[protocol].requestIdHeader;
  const headers: Record<string, string> = { "x-request-id": requestId };
  if (repeated !== undefined) headers[repeated] = requestId;
  headers["x-tollgate-origin"] = "gateway";
  headers["x-content-type-options"] = "nosniff";
  return { requestId, headers };
}

const ignore = (): void => {};
const NO_BODY: ReadonlySet<number> = new Set([204, 304]);
const NO_BYTES: Uint8Array = new Uint8Array(0);
const CR = 0x0d;
const LF = 0x0a;
/** Ends a chunked body (RFC 9112 section 7.1). */
const LAST_CHUNK: Uint8Array = Buffer.from("0\r\n\r\n");
/** Above this, copying and garbage collection cost more than Node's gathered write. */
const COPIED_BYTES_MAX = 1_024;
/** Together with its head, it stays below the 16 KB up to which Node writes a string without an allocation. */
const ONE_PIECE_BYTES_MAX = 12_288;
/** Size of one write of a large answer. */
const SLICE_BYTES = 65_536;

export class Reply {
  /** As in `x-request-id`. */
  readonly requestId: string;
  /** The id that the trusted front has given to the request; for the log only. */
  readonly frontRequest: string | undefined;
  /** Resolves when the whole answer has been handed to the operating system, or can no longer be. Never rejects. */
  readonly finished: Promise<void>;
  readonly #res: ServerResponse;
  readonly #context: ReplyContext;
  readonly #resolveFinished: () => void;
  readonly #onGone: (() => void)[] = [];
  #opened = false;
  #ended = false;
  #handedOver = false;
  #gone = false;
  #writtenBytes = 0;
  #stallTimer: NodeJS.Timeout | undefined;

  constructor(res: ServerResponse, context: ReplyContext) {
    this.#res = res;
    this.#context = context;
    this.requestId = context.requestId;
    this.frontRequest = context.frontRequest;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.finished = promise;
    this.#resolveFinished = resolve;
    res.on("finish", () => this.#done());
    res.on("close", () => this.#closed());
    // The close event follows and is handled. Without a listener, this would be an uncaught exception (row 78).
    res.on("error", ignore);
  }

  /** Whether the head has been given. From then on, the status is final. */
  get opened(): boolean {
    return this.#opened;
  }

  /** Whether the last byte has been given. */
  get ended(): boolean {
    return this.#ended;
  }

  /** Whether the client disconnected, or was disconnected, before it had the whole answer. */
  get gone(): boolean {
    return this.#gone;
  }

  /** Body bytes given to the socket. */
  get writtenBytes(): number {
    return this.#writtenBytes;
  }

  /** Answers in one piece. Call it once, and not after `open`. No effect if the client has disconnected. */
  whole(status: number, headers: ReplyHeaders, body: Uint8Array): void {
    const bodyPending = this.#context.bodyPending();
    this.#writeHead(status, headers, NO_BODY.has(status) ? undefined : String(body.length), bodyPending);
    this.#ended = true;
    if (this.#gone) return;
    this.#writtenBytes += body.length;
    if (bodyPending) this.#endAfterLinger(body);
    else if (body.length > SLICE_BYTES) this.#endInSlices(body);
    else this.#endInOnePiece(body);
    this.#watchStall();
  }

  /**
   * Writes slice by slice, as the client takes them. Node reports nothing about one large write before all of it is
   * taken, so a slow reader would look like a client that does not read.
   */
  #endInSlices(body: Uint8Array): void {
    let sent = 0;
    const feed = (): void => {
      while (body.length - sent > SLICE_BYTES) {
        const slice = body.subarray(sent, sent + SLICE_BYTES);
        sent += slice.length;
        if (this.#res.write(slice)) continue;
        this.#watchStall();
        return;
      }
      this.#res.off("drain", feed);
      this.#res.end(body.subarray(sent));
      this.#watchStall();
    };
    this.#watchDrain();
    this.#res.on("drain", feed);
    feed();
  }

  /** Node sends a head and a string in one write, but a head and bytes in a gathered write. */
  #endInOnePiece(body: Uint8Array): void {
    if (body.length > ONE_PIECE_BYTES_MAX) this.#res.end(body);
    else this.#res.end(asBuffer(body).toString("latin1"), "latin1");
  }

  /**
   * Begins a stream. Call it once, and not after `whole`. The head is sent with the first bytes.
   * @param headers override the default headers of an unbuffered event stream.
   */
  open(status: number, headers: ReplyHeaders): void {
    this.#watchDrain();
    this.#writeHead(status, {
      "content-type": "text/event-stream; charset=utf-8",
      "cache-control": "no-cache",
      "x-accel-buffering": "no",
      ...headers,
    });
  }

  /**
   * Begins an answer from another server: none of our own headers is added. Call it once, and not after `whole`. The
   * head is sent at once.
   * @param headers names and values alternating, without hop-by-hop headers.
   */
  openRelayed(status: number, headers: readonly string[]): void {
    this.#watchDrain();
    if (this.#openedBefore()) return;
    const close = this.#context.mustClose() || this.#context.bodyPending();
    this.#res.writeHead(status, close ? [...headers, "connection", "close"] : [...headers]);
    // Not `flushHeaders`, because that encodes non-ASCII bytes, which Node has read as Latin-1, as UTF-8. Node delays
    // what is written to the next turn of the event loop unless the socket is already corked.
    const { socket } = this.#res;
    socket?.cork();
    this.#res.write(NO_BYTES);
    socket?.uncork();
  }

  /**
   * Leaves HTTP: after this answer, 101, the connection speaks another protocol and belongs to the caller.
   * @param headers names and values alternating, without hop-by-hop headers.
   */
  switchProtocols(headers: readonly string[]): void {
    if (this.#openedBefore()) return;
    const { socket } = this.#res;
    this.#res.writeHead(101, [...headers, "connection", "Upgrade", "upgrade", "websocket"]);
    this.#res.flushHeaders();
    if (socket) this.#res.detachSocket(socket);
    this.#ended = true;
    this.#done();
  }

  /**
   * Sends bytes of a stream.
   * @returns false if the caller must wait for `onDrain` before the next write. True if the client has disconnected:
   *   the bytes are discarded, and there is nothing to wait for.
   */
  write(bytes: Uint8Array): boolean {
    assert(this.#opened && !this.#ended, "write outside of an open stream");
    if (this.#gone || bytes.length === 0) return true;
    this.#writtenBytes += bytes.length;
    const roomLeft = this.#mayChunk(bytes) ? this.#writeChunk(bytes) : this.#res.write(bytes);
    if (!roomLeft) this.#watchStall();
    return roomLeft;
  }

  /** Ends a stream as complete. */
  end(bytes?: Uint8Array): void {
    assert(this.#opened && !this.#ended, "end outside of an open stream");
    this.#ended = true;
    if (this.#gone) return;
    this.#writtenBytes += bytes?.length ?? 0;
    if (this.#context.bodyPending()) this.#endAfterLinger(bytes ?? NO_BYTES);
    else if (bytes && this.#mayChunk(bytes)) this.#endWithChunk(bytes);
    else this.#res.end(bytes);
    this.#watchStall();
  }

  /**
   * Whether `bytes` of a chunked body are framed as a chunk here. Node hands a chunk to the socket as four pieces and a
   * gathered write, 6.4 us for one event; one buffer with the same bytes saves 1.1. Not possible while Node still holds
   * earlier pieces of this turn, because the chunk would be sent before them.
   */
  #mayChunk(bytes: Uint8Array): boolean {
    const { chunkedEncoding, writableLength, socket } = this.#res;
    return chunkedEncoding && bytes.length <= COPIED_BYTES_MAX && writableLength === socket?.writableLength;
  }

  /** Node writes bytes unchanged while `chunkedEncoding` is off. */
  #writeChunk(bytes: Uint8Array): boolean {
    this.#res.chunkedEncoding = false;
    const roomLeft = this.#res.write(chunkOf(bytes, NO_BYTES));
    this.#res.chunkedEncoding = true;
    return roomLeft;
  }

  #endWithChunk(bytes: Uint8Array): void {
    this.#res.chunkedEncoding = false;
    this.#res.end(chunkOf(bytes, LAST_CHUNK));
  }

  /**
   * Ends the answer as broken: the client sees the connection end inside the body. It counts as disconnected at once,
   * because the connection reports its end only later in this turn of the event loop.
   */
  destroy(): void {
    this.#ended = true;
    this.#gone ||= !this.#handedOver;
    this.#res.destroy();
  }

  /** Called each time the socket accepts bytes again after a `write` that returned false. */
  onDrain(callback: () => void): void {
    this.#res.on("drain", callback);
  }

  /** Called once when the client disconnects before it has the whole answer; at once if it already has. */
  onGone(callback: () => void): void {
    if (this.#gone) callback();
    else this.#onGone.push(callback);
  }

  /** Puts all headers into one object: 0.3 us instead of 0.9 for four spreads. */
  #writeHead(status: number, headers: ReplyHeaders, length?: string, bodyPending = false): void {
    if (this.#openedBefore()) return;
    const all = this.#context.headers;
    for (const name in headers) all[name] = headers[name] as string;
    if (length !== undefined) all["content-length"] = length;
    if (bodyPending || this.#context.mustClose()) all.connection = "close";
    this.#res.writeHead(status, all);
  }

  /** Asserts that this is the first head. @returns whether the client has disconnected. */
  #openedBefore(): boolean {
    assert(!this.#opened, "a second head");
    this.#opened = true;
    return this.#gone;
  }

  /**
   * Closing a socket that holds unread bytes sends a reset, which can destroy the answer before the client has read it
   * (RFC 9112 section 9.6). So the rest of the request is drained first, for `lingerMs` and up to `lingerBytesMax`.
   * After that many bytes the sender is blocked, and can read.
   */
  #endAfterLinger(body: Uint8Array): void {
    this.#watchDrain();
    const { req } = this.#res;
    const end = () => {
      clearTimeout(timer);
      this.#res.end();
    };
    const timer = setTimeout(end, this.#context.limits.lingerMs);
    req.on("end", end);
    req.on("close", end);
    const handedOver = () => this.#done();
    if (body.length > 0 && req.method !== "HEAD") this.#res.write(body, handedOver);
    else {
      this.#res.flushHeaders();
      this.#done();
    }
    let drainedBytes = 0;
    req.on("data", (chunk: Uint8Array) => {
      drainedBytes += chunk.length;
      if (drainedBytes > this.#context.limits.lingerBytesMax) req.pause();
    });
    req.resume();
  }

  /**
   * Small heartbeats do not show that the client has stopped reading. A socket that accepts nothing for long does (row
   * D3).
   */
  #watchStall(): void {
    clearTimeout(this.#stallTimer);
    // Usually the kernel has taken everything at once.
    if (this.#res.writableLength === 0) return;
    this.#stallTimer = setTimeout(() => this.#res.destroy(), this.#context.limits.writeStallMs).unref();
  }

  /** Not used for an answer in one write: after `end`, Node reports only that all of it was sent. */
  #watchDrain(): void {
    this.#res.on("drain", () => clearTimeout(this.#stallTimer));
  }

  #done(): void {
    this.#handedOver = true;
    clearTimeout(this.#stallTimer);
    this.#resolveFinished();
  }

  #closed(): void {
    clearTimeout(this.#stallTimer);
    if (!this.#handedOver) {
      this.#gone = true;
      for (const callback of this.#onGone.splice(0)) callback();
    }
    this.#resolveFinished();
    this.#context.closed();
  }
}

/**
 * The bytes as one chunk (RFC 9112 section 7.1). Empty input makes no chunk, because an empty chunk would end the body.
 * @param after appended to the chunk.
 */
function chunkOf(bytes: Uint8Array, after: Uint8Array): Uint8Array {
  if (bytes.length === 0) return after;
  const head = `${bytes.length.toString(16)}\r\n`;
  const end = head.length + bytes.length;
  const chunk = Buffer.allocUnsafe(end + 2 + after.length);
  for (let i = 0; i < head.length; i++) chunk[i] = head.charCodeAt(i);
  chunk.set(bytes, head.length);
  chunk[end] = CR;
  chunk[end + 1] = LF;
  chunk.set(after, end + 2);
  return chunk;
}
