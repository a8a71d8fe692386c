/** Assembles the layers between the gateway and the store, for the gateway and the simulation. */
import type { Log } from "../../telemetry/log.ts";
import type { Metrics } from "../../telemetry/metrics.ts";
import type { Clock } from "../../values/time.ts";
import type { Store } from "../contract.ts";
import { overlay } from "../overlay.ts";
import { Breakers } from "./breakers.ts";
import { type Gate, gatedWrites } from "./gate.ts";
import { RequestPath } from "./request-path.ts";

interface ComposeParts {
  readonly clock: Clock;
  readonly random: () => number;
  readonly metrics: Pick<Metrics, "storeSeconds" | "storeBreakerOpen">;
  readonly log: Log;
  /** Whether the store may become unavailable, because it is not in this process. */
  readonly remote: boolean;
}

export interface ComposedStore {
  /** The store itself; its calls for requests and their charges are timed and go through breakers. */
  readonly store: Store;
  /** The same store with a gate in front of it, which its other writes wait for as well. */
  behind(gate: Gate): Store;
  /** The same for operators. If there are replicas, writes are answered when a replica has them. */
  confirming(gate: Gate): Store;
  /** Why the gateway is not ready because of the store. */
  reasons(): string[];
  /** Stops probing an unavailable store; the store itself stays open. */
  stop(): void;
}

export function composeStore(opened: Store, { remote, ...parts }: ComposeParts): ComposedStore {
  const breakers = remote ? new Breakers({ store: opened, ...parts }) : undefined;
  const layered = (writer: Store, gate?: Gate): Store => {
    const path = new RequestPath({ store: opened, ...parts, breakers, gate });
    return overlay(writer, {
      ...(gate && gatedWrites(writer, gate)),
      readKey: (tag, hash) => path.readKey(tag, hash),
      admit: (ask) => path.admit(ask),
      extend: (ask) => path.extend(ask),
      settle: (ask, isAwaited) => path.settle(ask, isAwaited),
      settledAmounts: (tag, ids) => path.settledAmounts(tag, ids),
    });
  };
  return {
    store: layered(opened),
    behind: (gate) => layered(opened, gate),
    confirming: (gate) => layered(opened.confirming(), gate),
    reasons: () => breakers?.reasons() ?? [],
    stop: () => breakers?.stop(),
  };
}
