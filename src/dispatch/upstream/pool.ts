/** The upstreams of this process: those that are configured, and those that a reload has replaced and that still run. */
import type { UpstreamSettings } from "../../values/settings.ts";
import type { HealthState } from "./health.ts";
import { sameUpstream, Upstream, type UpstreamParts } from "./upstream.ts";

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

  /** @throws when the settings cannot be taken. */
  constructor(settings: ReadonlyMap<string, UpstreamSettings>, parts: UpstreamParts) {
    this.#parts = parts;
    this.#upstreams = this.#open(settings, new Map());
  }

  get(name: string): Upstream | undefined {
    return this.#upstreams.get(name);
  }

  /**
   * Unchanged upstreams keep their connections, queue and health; the others begin anew.
   * @throws when the settings cannot be taken; then nothing has changed.
   */
  replace(settings: ReadonlyMap<string, UpstreamSettings>): void {
    const before = this.#upstreams;
    this.#upstreams = this.#open(settings, before);
    for (const [name, upstream] of before) {
      if (this.#upstreams.get(name) !== upstream) void this.#retire(upstream);
    }
  }

  /** Attempts running now by upstream name, those at replaced upstreams included. */
  inFlight(): ReadonlyMap<string, number> {
    const counts = new Map([...this.#upstreams].map(([name, { slots }]) => [name, slots.running]));
    for (const { settings, slots } of this.#retired) {
      if (slots.running > 0) counts.set(settings.name, (counts.get(settings.name) ?? 0) + slots.running);
    }
    return counts;
  }

  inFlightTotal(): number {
    let total = 0;
    for (const { slots } of this.#upstreams.values()) total += slots.running;
    for (const { slots } of this.#retired) total += slots.running;
    return total;
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
    upstream.slots.dissolveQueue();
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
        return [name, kept && sameUpstream(kept.settings, settings) ? kept : new Upstream(settings, this.#parts)];
      }),
    );
  }
}
