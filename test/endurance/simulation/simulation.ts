/**
 * `simulate(seed)`: a small fleet with its store in one process and in virtual time. The seed decides which faults
 * occur. Then all faults end, and the books are compared with the truth (docs/simulation.md).
 */
import type { AccountTag } from "../../../src/values/key.ts";
import type { Violation } from "./books.ts";
import { PAYING } from "./catalog.ts";
import { Chance } from "./chance.ts";
import { type Caller, type ClientParts, request } from "./client.ts";
import { bringFaults } from "./faults.ts";
import { Gateway, type Running } from "./gateway.ts";
import { FINE, localStore, remoteStore, type Weather } from "./network.ts";
import { Operator } from "./operator.ts";
import type { Replica } from "./replica.ts";
import { Scheduler } from "./scheduler.ts";
import { Server } from "./server.ts";
import { Trace } from "./trace.ts";
import { Truth } from "./truth.ts";
import { judgeWorld, type Verdict } from "./verdict.ts";
import { watch } from "./watchman.ts";

export interface Result {
  readonly seed: number;
  /** The same for two runs of one seed. */
  readonly hash: string;
  readonly violations: readonly Violation[];
  readonly missing: number;
  /** Admitted requests. Each is a history from its hold to its ledger line. */
  readonly histories: number;
  readonly counts: ReadonlyMap<string, number>;
}

/** The forms of a store, and the kind that a gateway takes each for. */
const KINDS = { replicated: "redis", sharded: "redis-cluster", embedded: "embedded" } as const;
const HOLD_TTL_MS = 70_000;
/**
 * How long the last commits of an embedded store may be missing on the disk: the time for which Linux keeps a dirty
 * page.
 */
const DIRTY_MS = 35_000;
/**
 * The number of checks for a missing account, a minute apart, after which it counts as lost and the operator is
 * informed.
 */
const DOUBT_LOOKS = 12;
/** The number of violations that a seed reports. The first one says most. */
const VIOLATIONS_MAX = 10;

export async function simulate(seed: number, print?: (line: string) => void): Promise<Result> {
  return new World(seed, print).run();
}

class World {
  readonly #seed: number;
  readonly #chance: Chance;
  readonly #scheduler = new Scheduler();
  readonly #trace: Trace;
  readonly #truth = new Truth();
  readonly #weather: Weather = { ...FINE };
  readonly #server: Server;
  readonly #gateways: Gateway[];
  readonly #callers: Caller[] = [];
  readonly #operator: Operator;
  readonly #counts = new Map<string, number>();
  readonly #violations: Violation[] = [];
  readonly #form: keyof typeof KINDS;
  #losses = 0;
  #isOver = false;

  constructor(seed: number, print?: (line: string) => void) {
    this.#seed = seed;
    this.#chance = new Chance(seed);
    this.#trace = new Trace(this.#scheduler, print);
    this.#form = this.#chance.pick(["replicated", "replicated", "replicated", "sharded", "embedded"] as const);
    const sharded = this.#form === "sharded";
    this.#server = new Server({
      scheduler: this.#scheduler,
      shards: sharded ? 2 : 1,
      onViolation: this.#onViolation,
      note: this.#note,
    });
    this.#gateways = (this.#form === "embedded" ? ["a"] : ["a", "b", "c"]).map((name) => this.#gateway(name));
    this.#operator = new Operator({
      chance: this.#chance.fork("operator"),
      truth: this.#truth,
      callers: this.#callers,
      anyGateway: () => this.#anyGateway(),
      sleep: (ms) => this.#scheduler.sleep(ms),
      count: this.#count,
      codes: !sharded,
      clockWentBack: () => this.#server.hasGoneBack,
      losses: () => this.#losses,
      step: () => this.#scheduler.steps,
    });
  }

  async run(): Promise<Result> {
    this.#note("world", `${this.#form}, seed ${this.#seed}`);
    for (const gateway of this.#gateways) gateway.start();
    await this.#scheduler.run(100);
    this.#spawn(() => this.#openBusiness());
    await this.#scheduler.run(2_000);
    const lengthMs = this.#chance.skewed(4_000, 60_000);
    this.#spawn(() => this.#faults());
    this.#spawn(() => this.#clients(lengthMs));
    this.#spawn(() => this.#operators(lengthMs));
    this.#spawn(() => this.#watchman());
    await this.#scheduler.run(lengthMs);
    await this.#peace();
    const verdict = await this.#verdict();
    for (const { replica } of this.#server.shards) replica.dispose();
    return {
      seed: this.#seed,
      hash: this.#trace.digest(),
      violations: this.#violations.slice(0, VIOLATIONS_MAX),
      missing: verdict.missing,
      histories: this.#counts.get("admitted") ?? 0,
      counts: this.#counts,
    };
  }

  #gateway(name: string): Gateway {
    const { bytesMax, fsync } = {
      bytesMax: this.#chance.pick([128, 256, 512, 512, 1_024]) * 1_024,
      fsync: this.#chance.pick(["group", "group", "always"] as const),
    };
    return new Gateway({
      name,
      scheduler: this.#scheduler,
      chance: this.#chance.fork(`disk ${name}`),
      truth: this.#truth,
      storeFor: (process) =>
        this.#form === "embedded"
          ? localStore(process, this.#server)
          : remoteStore(process, {
              scheduler: this.#scheduler,
              chance: this.#chance.fork(`network ${name}`),
              server: this.#server,
              weather: this.#weather,
              count: this.#count,
            }),
      storeKind: KINDS[this.#form],
      bytesMax,
      fsync,
      count: this.#count,
      note: this.#note,
      onDeath: (gateway, withoutPower) => void this.#onDeath(gateway, withoutPower),
    });
  }

  async #onDeath(gateway: Gateway, withoutPower: boolean): Promise<void> {
    this.#note(gateway.name, withoutPower ? "loses power" : "dies");
    if (this.#form === "embedded") await this.#endEmbedded(withoutPower);
    this.#scheduler.after(this.#chance.skewed(30, 10_000), () => {
      if (!gateway.process) gateway.start();
    });
  }

  /** An embedded store loses its memory with the process, and with the power also what was not forced to the disk. */
  async #endEmbedded(withoutPower: boolean): Promise<void> {
    const lasting = (replica: Replica): number => {
      const { history } = replica;
      const old = history.findLastIndex(({ trueMs }) => trueMs < this.#scheduler.nowMs - DIRTY_MS) + 1;
      const least = Math.max(old, replica.forced());
      return least + this.#chance.below(history.length - least + 1);
    };
    const lost = await this.#server.endProcess(withoutPower ? lasting : undefined);
    this.#count("lost_operations", lost.length);
    if (lost.length > 0) this.#losses++;
  }

  /** Creates accounts, keys and funds before any fault. */
  async #openBusiness(): Promise<void> {
    const chance = this.#chance.fork("business");
    const accounts = 1 + chance.below(4);
    for (let number = 0; number < accounts; number++) {
      const tag = await this.#operator.addAccount();
      await this.#operator.addKey(tag, chance.pick(PAYING));
      if (chance.is(0.5)) await this.#operator.addKey(tag, chance.pick([...PAYING, "cards"]));
      await this.#operator.pay(tag, BigInt(Math.round(chance.skewed(3_000, 3_000_000))));
    }
    if (this.#form !== "sharded") await this.#operator.makeCode();
  }

  async #clients(lengthMs: number): Promise<void> {
    const chance = this.#chance.fork("clients");
    const parts: ClientParts = {
      chance,
      truth: this.#truth,
      holdTtlMs: HOLD_TTL_MS,
      count: this.#count,
      note: this.#note,
      onAdmitted: this.#onAdmitted,
      step: () => this.#scheduler.steps,
    };
    const requests = Math.round(chance.skewed(15, 120));
    for (let number = 0; number < requests && !this.#isOver; number++) {
      await this.#scheduler.sleep(chance.between(0, (2 * lengthMs) / requests));
      const gateway = this.#anyGateway();
      if (gateway && this.#callers.length > 0) {
        const caller = chance.pick(this.#callers);
        this.#spawn(() => request(caller, gateway, parts));
      }
    }
  }

  async #operators(lengthMs: number): Promise<void> {
    const chance = this.#chance.fork("operators");
    const acts = chance.below(25);
    for (let number = 0; number < acts && !this.#isOver; number++) {
      await this.#scheduler.sleep(chance.between(0, (2 * lengthMs) / acts));
      this.#spawn(() => this.#operator.act());
    }
  }

  #watchman(): Promise<void> {
    return watch({
      chance: this.#chance.fork("watchman"),
      serving: () => this.#serving(),
      sleep: (ms) => this.#scheduler.sleep(ms),
      count: this.#count,
      note: this.#note,
      isPeace: () => this.#isOver,
    });
  }

  #faults(): Promise<void> {
    const [scheduler, gateways, server, weather] = [this.#scheduler, this.#gateways, this.#server, this.#weather];
    const chance = this.#chance.fork("faults");
    const onLoss = (): void => void this.#losses++;
    const [count, note, embedded] = [this.#count, this.#note, this.#form === "embedded"];
    const parts = { scheduler, chance, gateways, server, weather, embedded, count, note, onLoss };
    return bringFaults(parts, () => this.#isOver);
  }

  /** Ends all faults, lets running work finish, and gives both passes of verification their time. */
  async #peace(): Promise<void> {
    this.#isOver = true;
    this.#note("world", "peace");
    Object.assign(this.#weather, FINE);
    for (const seconds of [12, 30, 31, 605]) {
      this.#server.away = undefined;
      for (const gateway of this.#gateways) {
        gateway.disk.fault = undefined;
        gateway.room = Number.POSITIVE_INFINITY;
      }
      if (seconds > 12) this.#scheduler.leap(seconds * 1_000);
      await this.#scheduler.run(seconds > 12 ? 4_000 : seconds * 1_000);
    }
    for (let looks = 0; looks < DOUBT_LOOKS && this.#gateways.some((gateway) => gateway.isWaiting); looks++) {
      this.#scheduler.leap(60_000);
      await this.#scheduler.run(4_000);
    }
  }

  async #verdict(): Promise<Verdict> {
    await this.#sweep();
    const verdict = await judgeWorld({ truth: this.#truth, server: this.#server, gateways: this.#gateways });
    for (const violation of verdict.violations) this.#onViolation(violation);
    await this.#replayAll();
    return verdict;
  }

  /**
   * Every call for a hold removes expired ones. This one asks for a hold that does not exist, at the latest time that
   * the store's clock has ever shown.
   */
  async #sweep(): Promise<void> {
    const { skewMs } = this.#server;
    this.#server.skewMs = Math.max(skewMs, this.#server.skewMostMs);
    for (const tag of this.#truth.accounts.keys()) {
      for (let times = 0; times < 6; times++) {
        await this.#server.run("extend", [{ requestId: "sweep", tag, target: 0n }]);
      }
    }
    this.#server.skewMs = skewMs;
  }

  /** docs/failure-model.md invariant 32: all records of the journals are replayed twice, and nothing changes. */
  async #replayAll(): Promise<void> {
    const before = await this.#states();
    for (let times = 0; times < 2; times++) {
      await this.#server.replace(this.#chance.below(this.#server.shards.length), 0);
      if (times === 1) for (const { process } of this.#gateways) process?.die();
      await this.#scheduler.run(12_000);
    }
    const after = await this.#states();
    for (const [tag, state] of before) {
      if (after.get(tag) !== state)
        this.#onViolation({ invariant: 32, what: `account ${tag}: ${state} -> ${after.get(tag)}` });
    }
  }

  async #states(): Promise<Map<AccountTag, string>> {
    const states = new Map<AccountTag, string>();
    for (const tag of this.#truth.accounts.keys()) {
      const state = await this.#server.storeOf(tag).inspect(tag);
      if (!state) continue;
      const { account, seq, keys, entitlements, settled } = state;
      const facts = [account.balance, account.plan, seq, keys, entitlements, settled.length];
      states.set(
        tag,
        JSON.stringify(facts, (_, value) => (typeof value === "bigint" ? String(value) : value)),
      );
    }
    return states;
  }

  #anyGateway(): Running | undefined {
    const serving = this.#serving();
    return serving.length === 0 ? undefined : this.#chance.pick(serving);
  }

  #serving(): Running[] {
    return this.#gateways.map(({ running }) => running).filter((running) => running !== undefined);
  }

  /**
   * ARCHITECTURE.md promise 4: an admission is decided on the last acknowledged change, unless the store has lost
   * something since.
   */
  readonly #onAdmitted = ({ keyId }: Caller, group: string, askedAtStep: number): void => {
    const last = this.#operator.settledGroups.get(keyId);
    if (!last || last.step > askedAtStep || last.losses !== this.#losses || last.group === group) return;
    this.#onViolation({ invariant: 15, what: `key ${keyId} was decided in ${group}, not in ${last.group}` });
  };

  readonly #onViolation = (violation: Violation): void => {
    this.#note("VIOLATION", `${violation.invariant}: ${violation.what}`);
    this.#violations.push(violation);
  };

  readonly #note = (who: string, what: string): void => this.#trace.note(who, what);

  readonly #count = (what: string, by = 1): void => {
    this.#counts.set(what, (this.#counts.get(what) ?? 0) + by);
  };

  /** Runs work in the background. An error in it is a finding. */
  #spawn(work: () => Promise<void>): void {
    work().catch((error: unknown) => {
      const what = error instanceof Error ? (error.stack ?? error.message) : String(error);
      this.#onViolation({ invariant: 0, what: `a defect: ${what}` });
    });
  }
}
