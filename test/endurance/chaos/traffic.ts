/**
 * Clients that send one request after another over kept-alive connections, accept every refusal that an outage
 * explains, and record their answers outside the gateways. Some disconnect in the middle of a stream.
 */
import { Agent, request } from "undici";
import type { ChaosAccount } from "./accounts.ts";
import { INPUT_NANO, MULTIPLIERS, OUTPUT_NANO } from "./config.ts";
import type { Fleet } from "./fleet.ts";
import { between, lasting, type Random } from "./stores/store.ts";

/** An answer that a client has received completely. */
export interface Answered {
  readonly account: string;
  /** Its cost according to its usage, nano-dollars. */
  readonly cost: bigint;
}

/** The answers that clients got, by request id. */
export interface Truth {
  readonly answered: Map<string, Answered>;
  /** Requests that were refused, which must not be charged. */
  readonly refused: Set<string>;
  /**
   * The accounts of requests whose answer began and was not read to its end: cut by a fault, or ended by the client.
   */
  readonly unfinished: Map<string, string>;
  /** Refusals by status and cause. */
  readonly refusals: Record<string, number>;
  /** Answers that no fault explains, shortened. */
  readonly unexpected: string[];
  begun: number;
  /** Streams that the client has ended. */
  left: number;
  /** Requests whose connection or stream broke. */
  cut: number;
}

export function newTruth(): Truth {
  const sets = { answered: new Map(), refused: new Set<string>(), unfinished: new Map() };
  return { ...sets, refusals: {}, unexpected: [], begun: 0, left: 0, cut: 0 };
}

export interface TrafficParts {
  readonly fleet: Fleet;
  readonly accounts: readonly ChaosAccount[];
  readonly truth: Truth;
  readonly random: Random;
  /** Called after every complete answer. */
  readonly onAnswer: () => void;
}

const TIMEOUT_MS = 15_000;
const OUTPUT_TOKENS_MAX = 200;
/** The pauses of a client: between two requests, and after a refusal or a lost connection. */
const PACE_MS = 6;
const REFUSED_PAUSE_MS = 40;
const STREAMED_SHARE = 0.4;
/** The share of streams from which the client disconnects. */
const LEAVING_SHARE = 0.03;

/** Refusals that poor accounts and faults cause. Any other is a defect. */
const BORNE = new Set(["403 insufficient_balance", "429 concurrency", "503 store_unavailable", "503 overloaded"]);

interface Way {
  readonly path: string;
  readonly model: string;
  /** The end of a complete stream. */
  readonly end: string;
  body(content: string): object;
}

const messages = (content: string) => [{ role: "user", content }];
const CHAT: Way = {
  path: "/v1/chat/completions",
  model: "chat-1",
  end: "data: [DONE]",
  body: (content) => ({ messages: messages(content), max_tokens: OUTPUT_TOKENS_MAX }),
};
const WAYS: readonly Way[] = [
  CHAT,
  {
    path: "/v1/messages",
    model: "messages-1",
    end: "event: message_stop",
    body: (content) => ({ messages: messages(content), max_tokens: OUTPUT_TOKENS_MAX }),
  },
  {
    path: "/v1/responses",
    model: "responses-1",
    end: "event: response.completed",
    body: (content) => ({ input: content, max_output_tokens: OUTPUT_TOKENS_MAX }),
  },
];

export class Traffic {
  readonly #parts: TrafficParts;
  readonly #agent = new Agent({ headersTimeout: TIMEOUT_MS, bodyTimeout: TIMEOUT_MS, keepAliveTimeout: 30_000 });

  constructor(parts: TrafficParts) {
    this.#parts = parts;
  }

  /** Runs one client until it is stopped. */
  async client(stopped: { readonly now: boolean }): Promise<void> {
    const { accounts, random } = this.#parts;
    while (!stopped.now) {
      const account = accounts[Math.floor(random() * accounts.length)] as ChaosAccount;
      const content = await this.ask(account);
      await lasting(between(random, 0, 2 * (content ? PACE_MS : REFUSED_PAUSE_MS)));
    }
  }

  /** Sends one request to any gateway. @returns whether it was answered. */
  async ask(account: ChaosAccount): Promise<boolean> {
    const { fleet, random, truth } = this.#parts;
    const gateway = fleet.at(Math.floor(random() * fleet.size));
    if (!gateway) return false;
    truth.begun++;
    try {
      return await this.#send(gateway.url, account);
    } catch {
      truth.cut++;
      return false;
    }
  }

  close(): Promise<void> {
    return this.#agent.destroy();
  }

  async #send(url: string, account: ChaosAccount): Promise<boolean> {
    const { random, truth } = this.#parts;
    // `double-money` serves chat models only.
    const way = account.group === "double-money" ? CHAT : (WAYS[Math.floor(random() * WAYS.length)] as Way);
    const stream = random() < STREAMED_SHARE;
    const leaves = stream && random() < LEAVING_SHARE;
    const usage = { input: between(random, 1, 40), output: between(random, 1, OUTPUT_TOKENS_MAX) };
    const reply = await request(`${url}${way.path}`, {
      dispatcher: this.#agent,
      method: "POST",
      headers: { authorization: `Bearer ${account.key}`, "content-type": "application/json" },
      body: JSON.stringify({ model: way.model, ...way.body(wish(usage)), ...streamed(way, stream) }),
    });
    const id = String(reply.headers["x-request-id"]);
    truth.unfinished.set(id, account.name);
    if (leaves && reply.statusCode === 200) {
      await firstBytes(reply.body);
      truth.left++;
      return true;
    }
    const text = await reply.body.text();
    if (reply.statusCode !== 200) return this.#refused(id, reply.statusCode, text);
    if (stream && !text.includes(way.end)) {
      truth.cut++;
      return false;
    }
    return this.#answered(id, account, text, usage);
  }

  #refused(id: string, status: number, text: string): false {
    const { truth } = this.#parts;
    const cause = `${status} ${/"cause":"(\w+)"/.exec(text)?.[1]}`;
    truth.unfinished.delete(id);
    truth.refused.add(id);
    truth.refusals[cause] = (truth.refusals[cause] ?? 0) + 1;
    if (!BORNE.has(cause)) this.#odd(`${id}: ${text}`);
    return false;
  }

  #answered(id: string, account: ChaosAccount, text: string, wished: { input: number; output: number }): boolean {
    const { truth, onAnswer } = this.#parts;
    const input = lastNumber(text, /"(?:prompt|input)_tokens": ?(\d+)/g);
    const output = lastNumber(text, /"(?:completion|output)_tokens": ?(\d+)/g);
    if (input !== wished.input || output !== wished.output)
      this.#odd(`${id}: other usage than the upstream's: ${text}`);
    if (truth.answered.has(id)) this.#odd(`${id}: given twice`);
    const multiplier = MULTIPLIERS[account.group] ?? 0n;
    const cost = (BigInt(input) * INPUT_NANO + BigInt(output) * OUTPUT_NANO) * multiplier;
    truth.unfinished.delete(id);
    truth.answered.set(id, { account: account.name, cost });
    onAnswer();
    return true;
  }

  #odd(what: string): void {
    this.#parts.truth.unexpected.push(what.slice(0, 500));
  }
}

/**
 * The counts that the simulated upstream reports. Each request has its own, so that charges cannot be mistaken for each
 * other.
 */
function wish(usage: { input: number; output: number }): string {
  const counts = { ...usage, cached: 0, cacheWrite: 0, cacheWrite1h: 0, reasoning: 0 };
  return `simulate: ${JSON.stringify({ usage: counts, text: "A few words that come in several pieces.", ignoreLimit: true })}`;
}

function streamed(way: Way, stream: boolean): object {
  if (!stream) return {};
  return way === CHAT ? { stream, stream_options: { include_usage: true } } : { stream };
}

async function firstBytes(body: AsyncIterable<unknown> & { destroy(): void }): Promise<void> {
  for await (const _ of body) break;
  body.destroy();
}

function lastNumber(text: string, pattern: RegExp): number {
  return Number([...text.matchAll(pattern)].at(-1)?.[1]);
}
