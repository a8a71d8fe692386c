/**
 * How many connections the system allows this process (docs/failure-model.md row D8). Like Envoy, we keep client
 * connections below half of the limit on file descriptors. Upstream connections get most of the rest.
 */
import { readFileSync } from "node:fs";

/** For the store, the journal, the log, the listeners and the descriptors of Node itself. */
const RESERVED = 64;

export interface DescriptorShares {
  /** Client connections that are served. */
  readonly connectionsMax: number;
  /** Connections beyond that; each is refused with an answer. */
  readonly overflowMax: number;
  /** Requests that may have an upstream connection. */
  readonly upstreamMax: number;
  /** Connections to the operator's own site. */
  readonly siteMax: number;
}

/** Parts of the limit: a half, a sixteenth, three eighths, a sixteenth. */
export function sharesOf(limit: number): DescriptorShares {
  const eighth = Math.max(1, Math.floor((limit - RESERVED) / 8));
  const siteMax = Math.max(1, Math.floor(eighth / 2));
  const overflowMax = Math.max(1, eighth - siteMax);
  return { connectionsMax: eighth * 4, overflowMax, upstreamMax: eighth * 3, siteMax };
}

/** The limit on open files (`ulimit -n`), or undefined if the system does not report it. */
export function descriptorLimit(): number | undefined {
  try {
    const soft = /^Max open files +([0-9]+) /m.exec(readFileSync("/proc/self/limits", "utf8"))?.[1];
    return soft === undefined ? undefined : Number(soft);
  } catch {
    return undefined;
  }
}
