/** Describes what the clients of a soak saw, in the form that the judge takes (`test/endurance/judge/`). */
import {
  exactly,
  type LoggedRequest,
  NOTHING,
  type Owed,
  type SeenRequest,
  SOMETHING,
  UNKNOWN,
} from "../../test/endurance/judge/judge.ts";
import type { Seen } from "./client.ts";
import { type LogLine, PRICE } from "./house.ts";
import type { Used } from "./reading.ts";

export interface Counted {
  readonly complete: number;
  readonly failed: number;
  readonly refused: number;
  readonly left: number;
  /** Requests without an answer: the client disconnected before it, or their idle connection was closed by the server. */
  readonly unanswered: number;
}

const NANO_USD_PER_TOKEN_AT_1 = 1_000n;

/** As what a request counts. */
export function outcomeOf({ requestId, reading, outcome }: Seen): keyof Counted {
  if (requestId === undefined) return "unanswered";
  if (!reading) return "refused";
  if (outcome === "left") return "left";
  return reading.ending === "complete" ? "complete" : "failed";
}

/** One request. Without an answer it gets an id that no ledger and no log has. @param number of the request. */
export function described(seen: Seen, number: number): SeenRequest {
  const { requestId, status } = seen;
  const unexpected = unexpectedIn(seen);
  if (requestId === undefined) return { id: `unanswered-${number}`, owed: UNKNOWN, unexpected, facts: factsOf(seen) };
  return {
    id: requestId,
    account: seen.account,
    owed: owedFor(seen),
    status,
    paidBy: "balance",
    unexpected,
    facts: factsOf(seen),
  };
}

function owedFor(seen: Seen): Owed {
  const { reading } = seen;
  if (!reading) return NOTHING;
  if (outcomeOf(seen) !== "complete") return reading.said ? SOMETHING : UNKNOWN;
  // A stream that lacks only its usage is complete, and its bill is an estimate.
  return { ...costOf(reading.used), unlessEstimated: true };
}

/** No amount can be checked if the bill is the upstream's count and the answer does not have it. */
function costOf({ input, output }: Used = { input: -1, output: -1 }): Owed {
  if (input < 0 || output < 0) return { amounts: new Set(), mayBeFree: false };
  return exactly((BigInt(input) * PRICE.input + BigInt(output) * PRICE.output) * NANO_USD_PER_TOKEN_AT_1);
}

function unexpectedIn({ scenario, requestId, status, outcome, reading, reused }: Seen): string[] {
  if (requestId === undefined) return outcome === "left" || reused ? [] : ["no answer, and had not left"];
  const found: string[] = [];
  if (!scenario.statuses.includes(status)) found.push("a status that is no answer to this");
  if (!reading || outcome === "left") return found;
  if (outcome === "broken") found.push("a connection that broke under it");
  else if (reading.ending === "open") found.push("an answer without a proper end");
  return found;
}

function factsOf({ scenario, status, outcome, error, reused, reading, tail }: Seen): object {
  const { kind, protocol, stream } = scenario;
  // The text of a refusal, and the last part of an answer without an end: they show the cause.
  const end = reading === undefined || reading.ending === "open" ? { tail } : {};
  return { kind, protocol, stream, status, outcome, error, reused, used: reading?.used, ...end };
}

/** The request lines of the log. */
export function loggedRequests(log: readonly LogLine[]): LoggedRequest[] {
  return log
    .filter(({ msg }) => msg === "request")
    .map(({ request, status, stream_end, charged_nano_usd }) => ({
      id: String(request),
      status,
      end: stream_end as string | undefined,
      charged: charged_nano_usd === undefined ? undefined : BigInt(String(charged_nano_usd)),
    }));
}
