/**
 * Answers on a socket for which Node has no `ServerResponse`, for example after a parser failure: a whole HTTP response
 * as bytes.
 */
import { type IncomingMessage, ServerResponse, STATUS_CODES } from "node:http";
import type { Socket } from "node:net";
import { type Refusal, refusal } from "../values/errors.ts";
import type { Protocol } from "../values/protocol.ts";
import { framing, targetTooLong } from "./framing.ts";
import type { HttpLimits } from "./http-limits.ts";
import type { ReplyHeaders } from "./reply.ts";
import { protocolOfTarget, splitTarget } from "./routes.ts";

/** A refusal in the error format of a protocol. */
export interface Rendered {
  readonly status: number;
  readonly headers: ReplyHeaders;
  readonly body: Uint8Array;
}

/** Node's error for a socket that failed before or between requests. */
export interface ClientError extends Error {
  readonly code?: string;
  /** The bytes at fault: the beginning of a request if its head was at fault. */
  readonly rawPacket?: Uint8Array;
}

/** The refusal for a failure of the parser (docs/failure-model.md rows 1 to 4, 10 to 15, 21, 25). */
export function refusalOf(error: ClientError): Refusal {
  switch (error.code) {
    case "ERR_HTTP_REQUEST_TIMEOUT":
      return refusal("request_timeout");
    case "HPE_HEADER_OVERFLOW":
      return refusal("headers_too_large");
    default:
      return framing("It could not be read as HTTP/1.1.");
  }
}

/**
 * The same for a failure in the head of a request. Node's parser counts the target and the headers together, so the
 * target is measured here. If the request line came in several reads, only the last one is known, and the headers count
 * as too large.
 */
export function refusalOfHead(error: ClientError, { targetBytesMax }: Pick<HttpLimits, "targetBytesMax">): Refusal {
  const isTooLong = error.code === "HPE_HEADER_OVERFLOW" && targetBytes(error.rawPacket) > targetBytesMax;
  return isTooLong ? targetTooLong(targetBytesMax) : refusalOf(error);
}

const TARGET_BEGINS = /^[A-Z]{1,16} (?=\S)/;
const METHOD_BYTES_MAX = 18;

/** The length of the target if the bytes begin with a request line, of which the end may be missing; else 0. */
function targetBytes(packet: Uint8Array | undefined): number {
  if (packet === undefined) return 0;
  const start = TARGET_BEGINS.exec(Buffer.from(packet.subarray(0, METHOD_BYTES_MAX)).toString("latin1"))?.[0].length;
  if (start === undefined) return 0;
  const end = packet.findIndex((byte, at) => at >= start && byte <= SPACE);
  return (end < 0 ? packet.length : end) - start;
}

const SPACE = 0x20;

const REQUEST_LINE = /^[A-Z]{1,16} (\/[^\s]{0,256})/;
const REQUEST_LINE_BYTES = 300;

/** The protocol whose error format the client most likely expects, judged by the bytes that it sent. */
export function protocolOfPacket(packet: Uint8Array | undefined): Protocol {
  const start = packet === undefined ? "" : Buffer.from(packet.subarray(0, REQUEST_LINE_BYTES)).toString("latin1");
  return protocolOfTarget(splitTarget(REQUEST_LINE.exec(start)?.[1] ?? "/").path);
}

/**
 * Sends a whole answer on a bare socket and closes it. Drains the rest of the request for `lingerMs`, so that no reset
 * destroys the answer (RFC 9112 section 9.6).
 * @param headers names in lowercase; `content-length` and `connection` are added here.
 */
export function answerRaw(socket: Socket, rendered: Rendered, lingerMs: number): void {
  // A socket that Node has detached (CONNECT) has no error listener left (row 78).
  socket.on("error", () => {});
  if (!socket.writable) {
    socket.destroy();
    return;
  }
  const lines = Object.entries({
    ...rendered.headers,
    date: new Date().toUTCString(),
    "content-length": String(rendered.body.length),
    connection: "close",
  }).map(([name, value]) => `${name}: ${value}\r\n`);
  const head = `HTTP/1.1 ${rendered.status} ${STATUS_CODES[rendered.status] ?? "Error"}\r\n${lines.join("")}\r\n`;
  socket.end(Buffer.concat([Buffer.from(head, "latin1"), rendered.body]));
  const timer = setTimeout(() => socket.destroy(), lingerMs);
  socket.on("end", () => socket.destroy());
  socket.on("close", () => clearTimeout(timer));
  socket.resume();
}

/*
 * A response on a connection that Node's HTTP server has detached, as it does when a client asks for an upgrade. Until
 * the protocol changes, the answer is ordinary HTTP.
 */

export class BareResponse extends ServerResponse {
  readonly #drained = () => void this.emit("drain");
  readonly #ended: () => void;

  /**
   * Closes the connection after an answer. Drains what still arrives for `lingerMs`, so that no reset destroys the
   * answer (RFC 9112 section 9.6).
   */
  constructor(req: IncomingMessage, socket: Socket, lingerMs: number) {
    super(req);
    this.#ended = () => socket.destroy();
    // These replace Node's own listeners, which were removed with its parser.
    socket.on("error", () => socket.destroy());
    socket.on("drain", this.#drained);
    socket.on("end", this.#ended);
    this.assignSocket(socket);
    this.on("finish", () => {
      this.detachSocket(socket);
      socket.end();
      const timer = setTimeout(() => socket.destroy(), lingerMs);
      socket.on("end", this.#ended);
      socket.on("close", () => clearTimeout(timer));
      socket.resume();
    });
  }

  /** Hands the connection over: this response no longer listens to it. */
  override detachSocket(socket: Socket): void {
    socket.off("drain", this.#drained);
    socket.off("end", this.#ended);
    super.detachSocket(socket);
  }
}
