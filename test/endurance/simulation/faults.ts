/**
 * The faults, by name. A seed uses only some of them, so that frequent ones do not hide rare ones. The letters in the
 * comments are the rows of the failure model.
 */
import type { Chance } from "./chance.ts";
import type { Gateway } from "./gateway.ts";
import { FINE, type Weather } from "./network.ts";
import type { Scheduler } from "./scheduler.ts";
import type { Server } from "./server.ts";

export interface FaultParts {
  readonly scheduler: Scheduler;
  readonly chance: Chance;
  readonly gateways: readonly Gateway[];
  readonly server: Server;
  readonly weather: Weather;
  /** Whether the store is in the gateway's own process and machine. */
  readonly embedded: boolean;
  readonly count: (what: string, by?: number) => void;
  readonly note: (who: string, what: string) => void;
  /** Called when the store has lost something that it had acknowledged. */
  readonly onLoss: () => void;
}

type Fault = (parts: FaultParts) => void;

const SECOND = 1_000;
const MINUTE = 60_000;
const HOUR = 3_600_000;

const aGateway = ({ chance, gateways }: FaultParts): Gateway => chance.pick(gateways);

/** Faults of the gateways' machines. */
const OF_GATEWAYS: Readonly<Record<string, Fault>> = {
  // A1 to A4
  kill: (parts) => aGateway(parts).process?.die(),
  kill_at_effect: (parts) => aGateway(parts).process?.dieAfter(1 + parts.chance.below(80)),
  // F5
  power_loss(parts) {
    const { chance } = parts;
    aGateway(parts).powerFails(chance.is(0.3) ? 0 : 1 + chance.below(60));
  },
  power_loss_when_answered: (parts) => aGateway(parts).powerFailsWhen("answered"),
  power_loss_when_sent: (parts) => aGateway(parts).powerFailsWhen("settlement sent"),
  // A7
  stop: (parts) => aGateway(parts).process?.stop(parts.chance.skewed(50, 30 * SECOND)),
  // F2
  disk_error(parts) {
    const { chance } = parts;
    const gateway = aGateway(parts);
    const { disk } = gateway;
    gateway.hasLost = true;
    disk.fault = { at: disk.calls + 1 + chance.below(8), times: chance.pick([1, 1, 1, 2, 3, 20]), code: "EIO" };
  },
  // F1
  disk_full(parts) {
    const gateway = aGateway(parts);
    gateway.room = 0;
    parts.scheduler.after(parts.chance.skewed(100, 30 * SECOND), () => {
      gateway.room = Number.POSITIVE_INFINITY;
    });
  },
  // E1, E2
  gateway_clock(parts) {
    const { chance, embedded, server } = parts;
    const gateway = aGateway(parts);
    gateway.machine.skewMs += (chance.is(0.5) ? 1 : -1) * chance.skewed(500, HOUR);
    // The store is on the same machine, so it has the same clock.
    if (embedded) server.skewMs = gateway.machine.skewMs;
  },
  standstill: ({ scheduler, chance }) => scheduler.leap(chance.skewed(100, 20 * MINUTE)),
};

/** Faults of a remote store and of the network to it. */
const OF_THE_STORE: Readonly<Record<string, Fault>> = {
  // B3
  store_away(parts) {
    const { server, chance, scheduler } = parts;
    server.away = chance.pick(["silent", "refusing"] as const);
    scheduler.after(chance.skewed(100, 30 * SECOND), () => {
      server.away = undefined;
    });
  },
  // B1, B2: the store restarts with all its data
  store_restart: (parts) => takeOver(parts, 0),
  // B6, B7: the replica lacks the last moments
  failover: (parts) => takeOver(parts, parts.chance.skewed(5, 5 * SECOND)),
  // A copy from some time ago
  failover_deep: (parts) => takeOver(parts, parts.chance.skewed(5 * SECOND, 3 * HOUR)),
  // B12: the store restarts empty, and an operator must look at it
  store_emptied: (parts) => takeOver(parts, Number.POSITIVE_INFINITY),
  // B12: the same, but an operator restores a backup from just before
  store_emptied_and_restored(parts) {
    const { server, chance, scheduler, onLoss } = parts;
    const shard = chance.below(server.shards.length);
    const backup = [...(server.shards[shard]?.replica.history ?? [])];
    takeOver(parts, Number.POSITIVE_INFINITY, shard);
    scheduler.after(chance.skewed(500, 20 * SECOND), () => {
      parts.note("store", "its data is put back");
      onLoss();
      void server.restore(shard, backup);
    });
  },
  store_clock: ({ server, chance }) => {
    server.skewMs += (chance.is(0.5) ? 1 : -1) * chance.skewed(500, HOUR);
  },
  // B4, B5
  bad_weather(parts) {
    const { weather, chance, scheduler } = parts;
    if (chance.is(0.6)) weather.requestLost = chance.skewed(0.01, 0.5);
    if (chance.is(0.6)) weather.replyLost = chance.skewed(0.01, 0.9);
    if (chance.is(0.4)) weather.twice = chance.skewed(0.01, 0.3);
    if (chance.is(0.5)) weather.late = chance.skewed(0.01, 0.3);
    weather.lateMs = chance.skewed(20, 20 * SECOND);
    scheduler.after(chance.skewed(300, 20 * SECOND), () => Object.assign(weather, FINE));
  },
};

function takeOver(parts: FaultParts, windowMs: number, chosen?: number): void {
  const { server, chance, scheduler, count, note, onLoss } = parts;
  const shard = chosen ?? chance.below(server.shards.length);
  void server.replace(shard, windowMs).then((lost) => {
    const charges = lost.filter(({ operation, answer }) => {
      return operation === "settle" && (answer as { outcome: string }).outcome === "settled";
    });
    count("lost_operations", lost.length);
    count("lost_charges", charges.length);
    note("store", `another server; ${lost.length} operations are lost, ${charges.length} charges`);
    if (lost.length > 0) onLoss();
  });
  if (!chance.is(0.7)) return;
  server.away = "refusing";
  scheduler.after(chance.skewed(50, 4 * SECOND), () => {
    server.away = undefined;
  });
}

/** Causes one fault after the other until `isOver`, and counts them by name. */
export async function bringFaults(parts: FaultParts, isOver: () => boolean): Promise<void> {
  const { chance, scheduler, embedded, count, note } = parts;
  const all = Object.entries(embedded ? OF_GATEWAYS : { ...OF_GATEWAYS, ...OF_THE_STORE });
  const share = chance.between(0.1, 0.8);
  const some = all.filter(() => chance.is(share));
  const pauseMs = chance.skewed(400, 8_000);
  while (some.length > 0) {
    await scheduler.sleep(chance.between(0.2, 1.8) * pauseMs);
    if (isOver()) return;
    const [name, fault] = chance.pick(some);
    note("world", name);
    count(`fault ${name}`);
    fault(parts);
  }
}
