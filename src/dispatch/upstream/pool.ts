/**
 * The upstreams of this process: the configured ones, and those that a reload has replaced and that are still running.
 */
import type { UpstreamSettings } from "../../values/settings.ts";
import type { HealthState } from "./health.ts";
import type { Slots } from "./slots.ts";
import { sameServer, sameUpstream, Upstream, type UpstreamParts } from "./upstream.ts";

/** What an operator sees of one upstream. */
export interface UpstreamReport extends HealthState {
  readonly name: string;
  readonly inFlight: number;
  readonly maxConcurrency: number;
  readonly queued: number;
}

export class UpstreamPool {
  readonly #parts: UpstreamParts;
  readonly #retired = new Set<Upstream>();
  #upstreams: ReadonlyMap<string, Upstream>;

  /** @throws if the settings cannot be used. */
  constructor(settings: ReadonlyMap<string, UpstreamSettings>, parts: UpstreamParts) {
    this.#parts = parts;
    this.#upstreams = this.#open(settings, new Map());
  }

  get(name: string): Upstream | undefined {
    return this.#upstreams.get(name);
  }

  /**
   * Unchanged upstreams keep their connections, queue and health; the others are replaced by new ones. Attempts that
   * still run at a replaced upstream count at its successor, even if it was not configured in between:
   * `max_concurrency` limits the concurrent requests to its server. With another address they do not count: attempts
   * that hang at the old server must not take slots from the new one.
   * @throws if the settings cannot be used; then nothing has changed.
   */
  replace(settings: ReadonlyMap<string, UpstreamSettings>): void {
    const before = this.#upstreams;
    const after = this.#open(settings, before);
    this.#upstreams = after;
    for (const [name, upstream] of before) {
      if (after.get(name) !== upstream) void this.#retire(upstream);
    }
    for (const [name, upstream] of after) {
      if (upstream !== before.get(name)) upstream.applyLimits();
    }
  }

  /** Makes all that wait for a slot or a turn choose again. */
  dissolveQueues(): void {
    for (const upstream of this.#upstreams.values()) upstream.dissolveQueues();
  }

  /** Running attempts by upstream name, including those at replaced upstreams. */
  inFlight(): ReadonlyMap<string, number> {
    const counts = new Map([...this.#upstreams.keys()].map((name) => [name, 0]));
    for (const [slots, name] of this.#slots()) {
      if (slots.running > 0) counts.set(name, (counts.get(name) ?? 0) + slots.running);
    }
    return counts;
  }

  inFlightTotal(): number {
    let total = 0;
    for (const slots of this.#slots().keys()) total += slots.running;
    return total;
  }

  /**
   * All slots, each once, with the name of the upstream. An upstream may share its slots with those that it has
   * replaced.
   */
  #slots(): ReadonlyMap<Slots, string> {
    return new Map(
      [...this.#upstreams.values(), ...this.#retired].map(({ slots, settings }) => [slots, settings.name]),
    );
  }

  report(): UpstreamReport[] {
    const inFlight = this.inFlight();
    return [...this.#upstreams].map(([name, { settings, slots, health }]) => ({
      name,
      inFlight: inFlight.get(name) ?? 0,
      maxConcurrency: settings.maxConcurrency,
      queued: slots.waiting,
      ...health.state(),
    }));
  }

  /** Lets running attempts finish, then closes all connections. */
  async close(): Promise<void> {
    await Promise.all([...this.#upstreams.values(), ...this.#retired].map((upstream) => upstream.close()));
  }

  async #retire(upstream: Upstream): Promise<void> {
    this.#retired.add(upstream);
    upstream.dissolveQueues();
    await upstream.close();
    this.#retired.delete(upstream);
  }

  #open(
    wanted: ReadonlyMap<string, UpstreamSettings>,
    existing: ReadonlyMap<string, Upstream>,
  ): ReadonlyMap<string, Upstream> {
    return new Map(
      [...wanted].map(([name, settings]) => {
        const kept = existing.get(name);
        if (kept && sameUpstream(kept.settings, settings)) return [name, kept];
        const before = [...existing.values(), ...this.#retired].find((one) => sameServer(one.settings, settings));
        return [name, new Upstream(settings, this.#parts, before)];
      }),
    );
  }
}
