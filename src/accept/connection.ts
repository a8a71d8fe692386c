/**
 * One client connection, which serves its requests one after the other. A pipelined request waits until the previous
 * one has been answered, so it is not admitted and holds no money while a stream runs (docs/failure-model.md rows 20
 * and D6).
 */
import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import type { RequestBody } from "./body.ts";
import { framing } from "./framing.ts";
import type { HttpLimits } from "./http-limits.ts";
import { type ClientError, refusalOf } from "./raw-answer.ts";
import type { Reply } from "./reply.ts";

/** A request and its answer. */
export interface HttpExchange {
  readonly req: IncomingMessage;
  readonly body: RequestBody;
  readonly reply: Reply;
  /** When its headers were complete, by the monotonic clock. */
  readonly receivedAtMs: number;
  /** Starts to serve it. */
  readonly start: () => void;
  /** Answers at once that too many requests wait on this connection. */
  readonly refuse: () => void;
}

export class ClientConnection {
  readonly #socket: Socket;
  readonly #answerRaw: (error: ClientError) => void;
  readonly #limits: Pick<HttpLimits, "pipelinedMax" | "requestsPerSocketMax">;
  readonly #waiting: HttpExchange[] = [];
  #current: HttpExchange | undefined;
  #last: HttpExchange | undefined;
  #broken: ClientError | undefined;
  #rawAnswered = false;
  #requests = 0;

  /** @param answerRaw answers a parser failure on the bare socket. */
  constructor(
    socket: Socket,
    limits: Pick<HttpLimits, "pipelinedMax" | "requestsPerSocketMax">,
    answerRaw: (error: ClientError) => void,
  ) {
    this.#socket = socket;
    this.#limits = limits;
    this.#answerRaw = answerRaw;
  }

  /** Whether nothing may be sent any more except the answer to the current request. */
  get isSpent(): boolean {
    return this.#rawAnswered;
  }

  /** Whether no request is being served or waits, and none was cut short. */
  get isIdle(): boolean {
    return this.#current === undefined && this.#waiting.length === 0 && !this.#rawAnswered && !this.#broken;
  }

  /** Whether an answer has ended of which the client has not taken everything yet. */
  get isSending(): boolean {
    return this.#current?.reply.ended === true;
  }

  /**
   * Resolves when the answer to the current request has been handed to the operating system, or can no longer be.
   * Undefined if there is no request, or if the rest of it is still to come and has no answer yet.
   */
  get answering(): Promise<void> | undefined {
    const { req, reply } = this.#current ?? {};
    return req?.complete || reply?.opened ? reply?.finished : undefined;
  }

  /** Counts a request. @returns whether it is the last one that this connection serves. */
  countsLast(): boolean {
    this.#requests += 1;
    return this.#requests >= this.#limits.requestsPerSocketMax;
  }

  /** What the client still has to send: headers, or the body of a request that arrived at `sinceMs`. */
  get due(): "head" | { readonly sinceMs: number } | undefined {
    if (this.#rawAnswered || this.#broken) return undefined;
    const last = this.#last;
    if (last !== undefined && !last.req.complete) return { sinceMs: last.receivedAtMs };
    return this.#current === undefined ? "head" : undefined;
  }

  /** An answer has been sent on the bare socket; nothing that arrives later is read. */
  refused(): void {
    this.#rawAnswered = true;
  }

  /** Takes a parsed request: starts it, or queues it. */
  add(exchange: HttpExchange): void {
    if (this.#rawAnswered || this.#broken) return;
    this.#last = exchange;
    if (this.#current === undefined) this.#start(exchange);
    else if (this.#waiting.length < this.#limits.pipelinedMax) this.#waiting.push(exchange);
    else exchange.refuse();
  }

  /** The answer to the current request has been sent or can no longer be sent: starts the next request. */
  answered(exchange: HttpExchange): void {
    // An idle connection must not keep the body of its last request in memory.
    if (this.#last === exchange && exchange.req.complete) this.#last = undefined;
    if (this.#current !== exchange) return;
    this.#current = undefined;
    if (this.#socket.destroyed) return;
    const next = this.#waiting.shift();
    if (next) this.#start(next);
    else if (this.#broken) this.#breakNow(this.#broken);
  }

  /**
   * The parser or the socket has failed. Requests before the fault are answered first; nothing after it is answered.
   */
  failed(error: ClientError): void {
    if (this.#rawAnswered || this.#broken) {
      if (!PARSER_FAULT.test(error.code ?? "") || error.code === EARLY_END) this.#socket.destroy();
      return;
    }
    // Bytes after `connection: close` are not a request (row 14).
    if (error.code === "HPE_CLOSED_CONNECTION") return;
    const last = this.#last;
    if (last !== undefined && !last.req.complete) this.#bodyFailed(last, error);
    else if (this.#current === undefined) this.#breakNow(error);
    else if (isGone(error)) this.#socket.destroy();
    else this.#broken = error;
  }

  /**
   * The fault is inside the body of the last request. That request's answer reports it, if it has not been answered
   * yet.
   */
  #bodyFailed(exchange: HttpExchange, error: ClientError): void {
    const unfinished = exchange.reply.opened && !exchange.reply.ended;
    // The answer has been sent, and the rest of the body, which would be discarded, does not arrive: nothing else would
    // close the connection.
    const isOver = exchange.reply.ended && this.#current !== exchange;
    if (isGone(error) || unfinished || isOver) {
      exchange.body.fail(framing("The connection ended before the body did."));
      this.#socket.destroy();
      return;
    }
    // An answer that has been given is sent first; then the connection closes without another answer.
    this.#broken = error;
    this.#rawAnswered = true;
    exchange.body.fail(refusalOf(error));
  }

  #start(exchange: HttpExchange): void {
    this.#current = exchange;
    exchange.start();
  }

  #breakNow(error: ClientError): void {
    if (this.#rawAnswered) {
      this.#socket.destroy();
      return;
    }
    this.#rawAnswered = true;
    this.#answerRaw(error);
  }
}

const EARLY_END = "HPE_INVALID_EOF_STATE";
const PARSER_FAULT = /^HPE_/;

/** Whether the client has disconnected, as opposed to having sent something invalid or nothing at all. */
function isGone(error: ClientError): boolean {
  const code = error.code ?? "";
  return code === EARLY_END || (!PARSER_FAULT.test(code) && code !== "ERR_HTTP_REQUEST_TIMEOUT");
}
