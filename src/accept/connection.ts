/**
 * One client connection: its requests one after the other. A pipelined request waits until the one before it has been
 * answered, so that it is not admitted, and holds no money, while a stream runs (docs/failure-model.md rows 20 and D6).
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
  /** When its head was complete, by the monotonic clock. */
  readonly receivedAtMs: number;
  /** Begins to serve it. */
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

  /** @param answerRaw answers a failure of the parser on the bare socket. */
  constructor(
    socket: Socket,
    limits: Pick<HttpLimits, "pipelinedMax" | "requestsPerSocketMax">,
    answerRaw: (error: ClientError) => void,
  ) {
    this.#socket = socket;
    this.#limits = limits;
    this.#answerRaw = answerRaw;
  }

  /** Whether nothing but the answer of the current request may still leave. */
  get isSpent(): boolean {
    return this.#rawAnswered;
  }

  /** Whether no request is being served or waits, and none was cut short. */
  get isIdle(): boolean {
    return this.#current === undefined && this.#waiting.length === 0 && !this.#rawAnswered && !this.#broken;
  }

  /** Counts a request. @returns whether it is the last that is served here. */
  countsLast(): boolean {
    this.#requests += 1;
    return this.#requests >= this.#limits.requestsPerSocketMax;
  }

  /** What the client has still to send: a head, or the body of a request that came at `sinceMs`. */
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

  /** Takes a parsed request: starts it, or lets it wait for its turn. */
  add(exchange: HttpExchange): void {
    if (this.#rawAnswered || this.#broken) return;
    this.#last = exchange;
    if (this.#current === undefined) this.#start(exchange);
    else if (this.#waiting.length < this.#limits.pipelinedMax) this.#waiting.push(exchange);
    else exchange.refuse();
  }

  /** The answer to the current request has left or can no longer leave: the next one's turn. */
  answered(exchange: HttpExchange): void {
    // An idle connection must not hold on to the body of its last request.
    if (this.#last === exchange && exchange.req.complete) this.#last = undefined;
    if (this.#current !== exchange) return;
    this.#current = undefined;
    if (this.#socket.destroyed) return;
    const next = this.#waiting.shift();
    if (next) this.#start(next);
    else if (this.#broken) this.#breakNow(this.#broken);
  }

  /** The parser or the socket has failed. Requests before the fault are answered first, nothing after it ever is. */
  failed(error: ClientError): void {
    if (this.#rawAnswered || this.#broken) {
      if (!PARSER_FAULT.test(error.code ?? "") || error.code === EARLY_END) this.#socket.destroy();
      return;
    }
    // Bytes after `connection: close` are no request (row 14).
    if (error.code === "HPE_CLOSED_CONNECTION") return;
    const last = this.#last;
    if (last !== undefined && !last.req.complete) this.#bodyFailed(last, error);
    else if (this.#current === undefined) this.#breakNow(error);
    else if (isGone(error)) this.#socket.destroy();
    else this.#broken = error;
  }

  /** The fault is inside the body of the last request: that request's answer reports it, if it has none yet. */
  #bodyFailed(exchange: HttpExchange, error: ClientError): void {
    const unfinished = exchange.reply.opened && !exchange.reply.ended;
    // The answer has left, and the rest of the body, which was only to be thrown away, does not come: nothing would end it.
    const isOver = exchange.reply.ended && this.#current !== exchange;
    if (isGone(error) || unfinished || isOver) {
      exchange.body.fail(framing("The connection ended before the body did."));
      this.#socket.destroy();
      return;
    }
    // An answer that has been given already leaves first; then the connection ends without another.
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

/** Whether the failure is the client's leaving rather than something that it said or kept back. */
function isGone(error: ClientError): boolean {
  const code = error.code ?? "";
  return code === EARLY_END || (!PARSER_FAULT.test(code) && code !== "ERR_HTTP_REQUEST_TIMEOUT");
}
