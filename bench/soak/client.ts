/** Runs one scenario against the gateway and records what the client saw. */
import { Agent, type ClientRequest, type IncomingMessage, request } from "node:http";
import { setTimeout as wait } from "node:timers/promises";
import { type Reading, readAnswer } from "./reading.ts";
import type { Scenario } from "./scenario.ts";

/** `whole`: read to the end of the body. `left`: the client disconnected. `broken`: the connection ended for the client. */
export type Outcome = "whole" | "left" | "broken";

export interface Seen {
  readonly scenario: Scenario;
  /** The account; undefined for an unknown key. */
  readonly account: string | undefined;
  readonly requestId: string | undefined;
  /** 0 if no headers came. */
  readonly status: number;
  /** Of a 200. */
  readonly reading: Reading | undefined;
  /** The last characters of the body, to investigate a finding. */
  readonly tail: string;
  readonly outcome: Outcome;
  /** The error of the broken connection. */
  readonly error: string | undefined;
  /** Whether the request was sent on a connection that had been idle: the server may close it at that moment (RFC 9112, 9.3.1). */
  readonly reused: boolean;
}

export interface ClientOptions {
  readonly url: string;
  readonly agent: Agent;
  readonly key: string;
  /** The key's account; undefined for an unknown key. */
  readonly account: string | undefined;
  /** The client's address, as a front would forward it. */
  readonly address: string;
}

/** No answer in these scenarios takes this long; one that does is a violation. */
const ANSWER_MS_MAX = 90_000;
/** How long a client that has half-closed waits for the gateway to close too. */
const LINGER_MS = 5_000;
const TAIL_CHARS = 300;

/** Never rejects. */
export function ask(scenario: Scenario, { url, agent, key, account, address }: ClientOptions): Promise<Seen> {
  return new Promise((resolve) => {
    const req = request(url + scenario.path, {
      method: "POST",
      agent,
      headers: {
        authorization: `Bearer ${key}`,
        "content-type": "application/json",
        "content-length": Buffer.byteLength(scenario.body),
        "x-forwarded-for": address,
      },
    });
    new Visit(scenario, account, req, resolve).start();
  });
}

class Visit {
  readonly #scenario: Scenario;
  readonly #account: string | undefined;
  readonly #req: ClientRequest;
  readonly #resolve: (seen: Seen) => void;
  readonly #timers: NodeJS.Timeout[] = [];
  readonly #pieces: string[] = [];
  #res: IncomingMessage | undefined;
  #events = 0;
  #left = false;
  #over = false;

  constructor(scenario: Scenario, account: string | undefined, req: ClientRequest, resolve: (seen: Seen) => void) {
    this.#scenario = scenario;
    this.#account = account;
    this.#req = req;
    this.#resolve = resolve;
  }

  start(): void {
    const { leaves, body } = this.#scenario;
    this.#req.on("error", (error: NodeJS.ErrnoException) => this.#end("broken", error.code ?? error.message));
    this.#req.on("close", () => this.#end("broken", "closed"));
    this.#req.on("response", (res) => this.#answered(res));
    this.#after(ANSWER_MS_MAX, () => {
      this.#end("broken", "no end in time");
      this.#req.destroy();
    });
    this.#req.end(body, () => {
      if (leaves?.afterEvents === 0) this.#after(leaves.afterMs, () => this.#leave());
    });
  }

  #answered(res: IncomingMessage): void {
    this.#res = res;
    res.setEncoding("utf8");
    res.on("data", (piece: string) => this.#read(res, piece));
    res.on("end", () => this.#end("whole", undefined));
    res.on("error", (error: NodeJS.ErrnoException) => this.#end("broken", error.code ?? error.message));
  }

  #read(res: IncomingMessage, piece: string): void {
    const { leaves, pauseMs } = this.#scenario;
    if (this.#pieces.push(piece) === 1 && pauseMs > 0) void pauseReading(res, pauseMs);
    if (!leaves) return;
    for (let at = piece.indexOf("data:"); at >= 0; at = piece.indexOf("data:", at + 1)) this.#events++;
    if (leaves.afterEvents > 0 && this.#events >= leaves.afterEvents) this.#leave();
  }

  #leave(): void {
    if (this.#left || this.#over) return;
    this.#left = true;
    const socket = this.#req.socket;
    if (!socket) {
      this.#req.destroy();
      return;
    }
    if (this.#scenario.leaves?.how === "rst") {
      socket.resetAndDestroy();
      return;
    }
    socket.end();
    this.#after(LINGER_MS, () => socket.destroy());
  }

  #after(ms: number, task: () => void): void {
    this.#timers.push(setTimeout(task, ms));
  }

  #end(outcome: Outcome, error: string | undefined): void {
    if (this.#over) return;
    this.#over = true;
    for (const timer of this.#timers) clearTimeout(timer);
    const id = this.#res?.headers["x-request-id"];
    const { protocol, stream } = this.#scenario;
    const text = this.#pieces.join("");
    this.#resolve({
      scenario: this.#scenario,
      account: this.#account,
      requestId: typeof id === "string" ? id : undefined,
      status: this.#res?.statusCode ?? 0,
      reading: this.#res?.statusCode === 200 ? readAnswer(protocol, stream, text) : undefined,
      tail: text.slice(-TAIL_CHARS),
      outcome: outcome === "broken" && this.#left ? "left" : outcome,
      error: this.#left ? undefined : error,
      reused: this.#req.reusedSocket,
    });
  }
}

async function pauseReading(res: IncomingMessage, ms: number): Promise<void> {
  res.pause();
  await wait(ms);
  res.resume();
}

/** Connections of all clients, kept between requests. */
export function clientAgent(): Agent {
  return new Agent({ keepAlive: true, maxSockets: Infinity });
}
