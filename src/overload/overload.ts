/**
 * The overload manager: the pressure of this process, and who is turned away for it at which point of a request's path.
 * Decisions are `accept/shed.ts`'s, from numbers; here the numbers are brought together.
 */
import { totalmem } from "node:os";
import process from "node:process";
import { type DescriptorShares, descriptorLimit, sharesOf } from "../accept/descriptors.ts";
import { FULL_RATIO } from "../settle/journal/open.ts";
import { PRESSURE_RATIO } from "../settle/journal/retention.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import { createVitalsMeter, type Load, type PressureLimits, pressureOf } from "../telemetry/pressure.ts";
import { type Refusal, refusal } from "../values/errors.ts";
import type { WellFormedKey } from "../values/key.ts";
import type { Settings } from "../values/settings.ts";
import type { Clock } from "../values/time.ts";
import { InFlight } from "./in-flight.ts";
import { CLOSE_FROM, REFUSE_CONNECTIONS_FROM, type ShedPoint, shedAt } from "./shed.ts";

/** Requests in flight that a process carries at least, even if its upstreams take fewer. */
const IN_FLIGHT_LEAST = 1_000;
/** Times what its upstreams take at once: as many again may wait for one, or for their clients. */
const IN_FLIGHT_FACTOR = 2;

const NO_LOAD: Load = { inFlight: 0, journal: 0 };

export interface Overload {
  /** Whether a request may go on at this point; the account is known by its key once that has other requests running. */
  at(point: "headers" | "body", key: WellFormedKey): Refusal | undefined;
  /** Takes an admitted request into flight. @returns what takes it out again, or why it may not go upstream. */
  enter(key: WellFormedKey): (() => void) | Refusal;
  /** What the listener asks of every connection and answer. */
  readonly connectionGuard: {
    /** How many connections the limit on descriptors leaves room for; undefined where the system does not say. */
    readonly shares: DescriptorShares | undefined;
    refusesConnections(): boolean;
    closesConnections(): boolean;
    /** A connection has been refused, for want of room or under pressure. */
    refused(): void;
  };
  /** Brings the gauge up to date. */
  measure(): void;
  stop(): void;
}

type OverloadInputs = Pick<Settings, "overload" | "upstreams" | "workers">;

interface OverloadParts {
  readonly settings: () => OverloadInputs;
  readonly journalFill: () => number;
  readonly clock: Clock;
  readonly metrics: Pick<Metrics, "pressure" | "shed">;
}

export function createOverload({ settings, journalFill, clock, metrics }: OverloadParts): Overload {
  const meter = createVitalsMeter(clock);
  const inFlight = new InFlight();
  const limit = descriptorLimit();
  const shares = limit === undefined ? undefined : sharesOf(limit);
  const memoryBytes = machineMemoryBytes();

  const limitsOf = ({ overload, upstreams, workers }: OverloadInputs): PressureLimits => ({
    inFlightMax: overload.inFlightMax ?? derivedInFlightMax([...upstreams.values()], shares?.upstreamMax),
    loopDelayMs: overload.loopDelayMs,
    memoryBytes: overload.memoryBytes ?? memoryBytes / workers,
  });
  let inForce = settings();
  let limits = limitsOf(inForce);
  const pressure = (load: Load): number => {
    if (settings() !== inForce) {
      inForce = settings();
      limits = limitsOf(inForce);
    }
    return pressureOf(meter.read(), load, limits);
  };
  const loaded = () => pressure({ inFlight: inFlight.census.total, journal: journalPressure(journalFill()) });

  const decide = (point: Exclude<ShedPoint, "accept">, own: number): Refusal | undefined => {
    const cause = shedAt(point, loaded(), own, inFlight.census);
    if (cause === undefined) return undefined;
    metrics.shed.inc({ point });
    return cause === "overloaded" ? refusal(cause) : refusal(cause, { detail: heavyDetail(own) });
  };

  return {
    at: (point, key) => decide(point, inFlight.ofKey(key.hash)),
    enter: ({ tag, hash }) => decide("upstream", inFlight.of(tag)) ?? inFlight.enter(tag, hash),
    connectionGuard: {
      shares,
      // Where only requests are too many, each is refused in its protocol's shape, the busiest accounts first.
      refusesConnections: () => pressure(NO_LOAD) >= REFUSE_CONNECTIONS_FROM,
      closesConnections: () => loaded() >= CLOSE_FROM,
      refused: () => metrics.shed.inc({ point: "accept" }),
    },
    measure: () => metrics.pressure.set(loaded()),
    stop: () => meter.stop(),
  };
}

/** Requests that a process carries at once when the operator names no number. */
function derivedInFlightMax(
  upstreams: readonly { readonly maxConcurrency: number }[],
  upstreamMax = Number.POSITIVE_INFINITY,
): number {
  const taken = upstreams.reduce((sum, { maxConcurrency }) => sum + maxConcurrency, 0);
  return Math.min(Math.max(IN_FLIGHT_LEAST, taken * IN_FLIGHT_FACTOR), upstreamMax);
}

/** Up to the first share the journal only keeps history, which gives way by itself; at the second it takes nothing new. */
function journalPressure(fill: number): number {
  return Math.max(0, (fill - PRESSURE_RATIO) / (FULL_RATIO - PRESSURE_RATIO));
}

/** What the container, else the machine, has. */
function machineMemoryBytes(): number {
  const constrained = process.constrainedMemory();
  return constrained > 0 && constrained < totalmem() ? constrained : totalmem();
}

function heavyDetail(own: number): string {
  return `This gateway is short of room, and your account has ${own} requests running, the largest part of it.`;
}
