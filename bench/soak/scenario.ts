/**
 * One request of the soak: its account, protocol and model, what the client does to the gateway, and what the upstream does to it. The
 * instructions for the upstream are in the request's text (`simulate:`, see the simulator).
 */
import type { Behavior, Fault } from "../../src/simulator/behavior.ts";
import { PROTOCOLS, type Protocol } from "../../src/values/protocol.ts";
import type { Chance } from "./chance.ts";

/** Kinds of accounts: `poor` ones run out of funds in mid-stream, `limited` ones reach their limits, `broke` ones have no funds. */
export type Payer = "rich" | "poor" | "limited" | "broke" | "nobody";

/** How the client disconnects: a half-close or a reset; after this many events, or before any if 0 (then after `ms`). */
export interface Leaving {
  readonly how: "fin" | "rst";
  readonly afterEvents: number;
  readonly afterMs: number;
}

export interface Scenario {
  readonly kind: Kind;
  readonly protocol: Protocol;
  readonly path: string;
  readonly body: string;
  readonly stream: boolean;
  readonly payer: Payer;
  readonly leaves: Leaving | undefined;
  /** How long the client stops reading after the first bytes, milliseconds. */
  readonly pauseMs: number;
  /** Allowed statuses for this request; any other one is a violation. */
  readonly statuses: readonly number[];
}

/** Relative frequency of each kind. */
export const KINDS = {
  stream: 36,
  open_ended: 12,
  whole: 8,
  poor: 4,
  leaves_fin: 6,
  leaves_rst: 6,
  leaves_early: 3,
  slow_reader: 0.4,
  bad_key: 1.5,
  limited: 1.5,
  no_funds: 1.5,
  bad_body: 1,
  unknown_model: 0.5,
  upstream_reset: 2,
  upstream_reset_early: 1.5,
  upstream_stall: 1.5,
  upstream_stall_early: 0.7,
  upstream_garbage: 1.5,
  upstream_no_stream: 1,
  upstream_error_event: 2,
  upstream_status: 3,
  upstream_once: 2,
  upstream_slow: 2,
  upstream_no_end: 1,
} as const;

export type Kind = keyof typeof KINDS;

/** Kinds of which every request should be answered to the end while an upstream is available. */
export const HEALTHY: ReadonlySet<Kind> = new Set(["stream", "open_ended", "whole", "slow_reader", "upstream_slow"]);

const PROTOCOL_NAMES = ["chat", "messages", "responses"] as const satisfies readonly Protocol[];
const LIMIT_FIELD = { chat: "max_tokens", messages: "max_tokens", responses: "max_output_tokens" } as const;
/** As the simulator cuts its text. */
const DELTA_CHARS = 12;
/** Share of the requests whose model's server speaks another protocol. */
const TRANSLATED = 0.35;
const OUTPUT_LIMIT = 1_000;

/** 403 and 429 mean that upstreams are down or at their limit; unexpected ones are counted. */
const TROUBLE = [200, 403, 429, 503, 529];

/** Makes the next request. @param number makes its text unique, and so the simulator's answer. */
export function scenarioOf(chance: Chance, number: number, eventMs: number): Scenario {
  const kind = chance.weighted(KINDS);
  const protocol =
    kind === "open_ended" || kind === "poor"
      ? chance.pick(["chat", "responses"] as const)
      : chance.pick(PROTOCOL_NAMES);
  const upstream = chance.next() < TRANSLATED ? chance.pick(PROTOCOL_NAMES) : protocol;
  const stream = kind !== "whole" && !(kind.startsWith("upstream_") && chance.next() < 0.15);
  const behavior = behaviorOf(kind, chance, eventMs, stream);
  const limited = kind !== "open_ended" && kind !== "poor";
  const body = bodyOf(protocol, {
    model: kind === "unknown_model" ? "no-such-model" : `${upstream}-1`,
    text: `request ${number}\nsimulate: ${JSON.stringify(behavior)}`,
    limit: limited ? OUTPUT_LIMIT : undefined,
    stream,
  });
  return {
    kind,
    protocol,
    path: PROTOCOLS[protocol].path,
    body: kind === "bad_body" ? body.slice(0, -chance.between(1, 20)) : body,
    stream,
    payer: payerOf(kind),
    leaves: leavingOf(kind, chance),
    pauseMs: kind === "slow_reader" ? chance.between(1_000, 4_000) : 0,
    statuses: statusesOf(kind),
  };
}

function payerOf(kind: Kind): Payer {
  if (kind === "poor" || kind === "limited") return kind;
  if (kind === "no_funds") return "broke";
  return kind === "bad_key" ? "nobody" : "rich";
}

function statusesOf(kind: Kind): readonly number[] {
  if (kind === "bad_key") return [401, 429];
  if (kind === "no_funds") return [403];
  if (kind === "bad_body") return [400];
  if (kind === "unknown_model") return [404];
  return TROUBLE;
}

function leavingOf(kind: Kind, chance: Chance): Leaving | undefined {
  if (kind === "leaves_fin" || kind === "leaves_rst") {
    const how = kind === "leaves_fin" ? "fin" : "rst";
    return { how, afterEvents: chance.between(1, 20), afterMs: 0 };
  }
  if (kind !== "leaves_early") return undefined;
  return { how: chance.pick(["fin", "rst"] as const), afterEvents: 0, afterMs: chance.between(0, 400) };
}

function behaviorOf(kind: Kind, chance: Chance, eventMs: number, stream: boolean): Behavior {
  if (kind === "slow_reader") {
    return {
      text: "a reader who does not read ".repeat(2_000),
      deltaChars: 20,
      ignoreLimit: true,
      fault: { hugeEvent: 500_000 },
    };
  }
  const events = chance.between(10, 60);
  const fault = faultOf(kind, chance);
  const firstDelayMs = kind === "upstream_slow" ? chance.between(1_000, 2_200) : chance.between(0, 2 * eventMs);
  return {
    text: "word ".repeat(Math.ceil((events * DELTA_CHARS) / 5)).slice(0, events * DELTA_CHARS),
    pace: stream
      ? { headersDelayMs: 0, firstDelayMs, betweenMs: eventMs }
      : { headersDelayMs: chance.between(0, 1_500), firstDelayMs: 0, betweenMs: 0 },
    ...(fault ? { fault } : {}),
  };
}

function faultOf(kind: Kind, chance: Chance): Fault | undefined {
  const n = chance.between(1, 15);
  switch (kind) {
    case "upstream_reset":
      return { resetAfterEvents: n };
    case "upstream_reset_early":
      return { resetBeforeHeaders: true };
    case "upstream_stall":
      return { stallAfterEvents: n };
    case "upstream_stall_early":
      return { stallBeforeHeaders: true };
    case "upstream_garbage":
      return { garbageAfterEvents: n };
    case "upstream_no_stream":
      return chance.next() < 0.5 ? { html: true } : { jsonErrorIn200: true };
    case "upstream_error_event":
      return { errorEventAfter: { n: chance.next() < 0.3 ? 0 : n, type: "overloaded_error" } };
    case "upstream_status":
      return statusFault(chance);
    case "upstream_once":
      return { times: 1, ...(chance.next() < 0.5 ? statusFault(chance) : { resetBeforeHeaders: true }) };
    case "upstream_no_end":
      return { endAfterEvents: n };
    default:
      return undefined;
  }
}

function statusFault(chance: Chance): Fault {
  const status = chance.pick([500, 500, 502, 503, 529, 429]);
  return status === 429 ? { status, retryAfter: 1 } : { status };
}

interface BodyParts {
  readonly model: string;
  readonly text: string;
  readonly limit: number | undefined;
  readonly stream: boolean;
}

function bodyOf(protocol: Protocol, { model, text, limit, stream }: BodyParts): string {
  const conversation =
    protocol === "responses" ? { input: text, store: false } : { messages: [{ role: "user", content: text }] };
  const usage = protocol === "chat" && stream ? { stream_options: { include_usage: true } } : {};
  return JSON.stringify({
    model,
    stream,
    ...(limit === undefined ? {} : { [LIMIT_FIELD[protocol]]: limit }),
    ...usage,
    ...conversation,
  });
}
