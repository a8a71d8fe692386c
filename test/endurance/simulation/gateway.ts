/**
 * One gateway of the fleet: the money path as it is built in production (`src/settle/recovery/charging.ts`,
 * `src/settle/journal/journaled-store.ts`), on a simulated disk, clock and network to the store. After its process
 * dies, it restarts with what is still on its disk.
 */
import type { AdmitParts } from "../../../src/admit/admit.ts";
import { NO_SEEN_KEYS } from "../../../src/admit/seen-keys.ts";
import { journaledStore } from "../../../src/settle/journal/journaled-store.ts";
import { createJournal } from "../../../src/settle/journal/open.ts";
import { abandoned } from "../../../src/settle/lines.ts";
import { type Charging, openCharging } from "../../../src/settle/recovery/charging.ts";
import type { EpochFile } from "../../../src/settle/recovery/epoch-file.ts";
import type { KnownEpoch } from "../../../src/settle/recovery/epoch-verdict.ts";
import type { Store } from "../../../src/store/contract.ts";
import { composeStore } from "../../../src/store/middleware/compose.ts";
import { overlay } from "../../../src/store/overlay.ts";
import type { Log } from "../../../src/telemetry/log.ts";
import type { Metrics } from "../../../src/telemetry/metrics.ts";
import { readRequestId } from "../../../src/values/request-id.ts";
import type { StoreSettings } from "../../../src/values/settings.ts";
import type { Clock } from "../../../src/values/time.ts";
import { SimDisk } from "../../unit/settle/sim-disk.ts";
import { CATALOG } from "./catalog.ts";
import type { Chance } from "./chance.ts";
import { diskOf } from "./disk.ts";
import { MachineClock, never, Process } from "./process.ts";
import type { Scheduler } from "./scheduler.ts";
import type { Truth } from "./truth.ts";

export interface GatewayParts {
  readonly name: string;
  readonly scheduler: Scheduler;
  readonly chance: Chance;
  readonly truth: Truth;
  /** The store as this process reaches it. */
  readonly storeFor: (process: Process) => Store;
  readonly storeKind: StoreSettings["kind"];
  readonly bytesMax: number;
  readonly fsync: "group" | "always";
  /** Counts something for the test's summary. */
  readonly count: (what: string) => void;
  readonly note: (who: string, what: string) => void;
  /** Called when the process has ended. The simulation restarts it. */
  readonly onDeath: (gateway: Gateway, withoutPower: boolean) => void;
}

/** The interface of a running process for clients and operators. */
export interface Running {
  readonly process: Process;
  readonly clock: Clock;
  readonly charging: Charging;
  readonly admit: AdmitParts;
  /** The store as the admin API uses it. */
  readonly admin: Store;
  /** The number of writes to the journal's file. */
  readonly writes: () => number;
  /** Called when a client has received the end of its answer. */
  readonly onAnswered: () => void;
}

/**
 * Moments at which everything promised must be on the disk. A power loss at such a moment shows what was not really
 * written.
 */
export type Moment = "answered" | "settlement sent";

export class Gateway {
  readonly #parts: GatewayParts;
  readonly machine: MachineClock;
  disk = new SimDisk();
  /** Defined while it serves. */
  running: Running | undefined;
  #process: Process | undefined;
  /** Whether a disk of this machine has lost data that was written to it. */
  hasLost = false;
  #withoutPower = false;
  #powerFailsWhen: Moment | undefined;
  #knownEpochs: ReadonlyMap<number, KnownEpoch> = new Map();
  #unverified = 0;

  constructor(parts: GatewayParts) {
    this.#parts = parts;
    this.machine = new MachineClock(parts.scheduler);
  }

  /** The free space of its disk, in bytes. */
  set room(bytes: number) {
    this.disk.room = bytes;
  }

  /** The machine loses power, and its process dies: now, or at one of its next effects. */
  powerFails(afterEffects = 0): void {
    if (!this.#process) return;
    this.hasLost = true;
    this.#withoutPower = true;
    if (afterEffects === 0) this.#process.die();
    else this.#process.dieAfter(afterEffects);
  }

  /** The machine loses power right after the next such moment. */
  powerFailsWhen(moment: Moment): void {
    this.#powerFailsWhen = moment;
  }

  #reached(moment: Moment, process: Process): void {
    if (this.#powerFailsWhen !== moment || this.#process !== process) return;
    this.#powerFailsWhen = undefined;
    this.powerFails();
  }

  get name(): string {
    return this.#parts.name;
  }

  /** Whether charges or writes wait for missing accounts, according to the metrics, or for the store. */
  get isWaiting(): boolean {
    this.#unverified = 0;
    this.running?.charging.measure();
    return this.#unverified > 0 || (this.running?.charging.settler.pending() ?? 0) > 0;
  }

  /** Undefined while it is down. A process may exist before it serves. */
  get process(): Process | undefined {
    return this.#process;
  }

  /** Starts a process on the data of the disk. A process that cannot start dies. */
  start(): void {
    const { name, scheduler, chance, onDeath } = this.#parts;
    const process = new Process(name, scheduler, () => {
      this.running = undefined;
      this.#process = undefined;
      const { room } = this.disk;
      this.disk = this.#withoutPower ? this.disk.afterPowerLoss(chance.next) : this.disk.afterKill();
      this.disk.room = room;
      onDeath(this, this.#withoutPower);
      this.#withoutPower = false;
    });
    this.#process = process;
    void this.#open(process);
  }

  async #open(process: Process): Promise<void> {
    const { storeFor, storeKind, note, chance, bytesMax, fsync } = this.#parts;
    const clock = this.machine.of(process);
    const disk = diskOf(process, this.disk, chance);
    const open = storeFor(process);
    const store = overlay(open, {
      settle: (ask) => {
        const answer = open.settle(ask);
        this.#reached("settlement sent", process);
        return answer;
      },
    });
    const composed = composeStore(store, {
      clock,
      random: chance.next,
      metrics: METRICS,
      log: this.#log(process),
      remote: true,
    });
    try {
      const charging = await openCharging({
        settings: { dir: "journal", fsync, bytesMax },
        store: composed,
        storeKind,
        clock,
        metrics: Object.assign({}, METRICS, {
          unverifiedCharges: {
            set: (count: number) => {
              this.#unverified = count;
            },
          },
        }),
        log: this.#log(process),
        machine: {
          open: async (settings, { alarm }) => ({
            ...(await createJournal({ ...settings, disk, clock, alarm })),
            disk,
          }),
          epochFile: () => this.#epochFile(process),
          random: (bytes) => Buffer.from(chance.bytes(bytes)),
          jitter: chance.next,
        },
      });
      if (!process.alive) return;
      note(process.name, "serves");
      this.running = { process, clock, charging, ...this.#edges(process, clock, charging) };
    } catch (error) {
      note(process.name, `does not start: ${error}`);
      process.die();
    }
  }

  /** A file that is replaced as a whole: a crash leaves the old or the new one. */
  #epochFile(process: Process): EpochFile {
    const slowly = async (): Promise<void> => {
      if (!process.touch()) return never();
      await process.sleep(1);
      if (!process.touch()) return never();
    };
    return {
      load: async () => {
        await slowly();
        return this.#knownEpochs;
      },
      save: async (known) => {
        await slowly();
        this.#knownEpochs = known;
      },
    };
  }

  /** Connects the parts as `src/gateway.ts` does. */
  #edges(
    process: Process,
    clock: Clock,
    charging: Charging,
  ): Pick<Running, "admit" | "admin" | "writes" | "onAnswered"> {
    const { truth, note } = this.#parts;
    const { settler, journal } = charging;
    const { disk } = this;
    return {
      admit: {
        store: charging.store,
        catalog: () => CATALOG,
        unsettled: settler.unsettled,
        seenKeys: NO_SEEN_KEYS,
        wallMs: () => clock.wallMs(),
        abandon: (id, tag, tokens) => void settler.settle(abandoned(id, tag, tokens, clock.wallMs()), false),
      },
      writes: () => disk.writes,
      onAnswered: () => this.#reached("answered", process),
      admin: journaledStore(charging.store, journal, ({ kind, id }) => {
        note(process.name, `${kind} ${id} is in the store only`);
        truth.unrecordedWrites.add(id);
      }),
    };
  }

  /** An outside observer knows only what the operator's log says, by the events of docs/log.md. */
  #log(process: Process): Log {
    const { truth, count, note, name } = this.#parts;
    const observe = (facts: object, message: string): void => {
      if (!process.alive) return;
      const {
        event,
        request: printed = "",
        reason = "",
        write = "",
        id = "",
        problem = "",
      } = facts as Record<string, string>;
      const request: string = readRequestId(printed) ?? printed;
      note(name, `log: ${message} ${request.slice(-6)}${write} ${id} ${problem}${reason.split("\n")[0]}`);
      if (event === "charge_unjournaled") {
        count("unrecorded");
        const seen = truth.requests.get(request as never);
        if (seen) seen.unrecorded = true;
      }
      if (event === "dead_letter") truth.letters.set(request, reason);
      if (event === "write_not_taken") truth.refusedAgain.push({ write, id, problem });
      if (event === "charge_restored") count("replayed");
      if (event === "history_given_up") truth.forgetful.add(name);
    };
    const written = (members: string, message: string) => observe(JSON.parse(`{${members.slice(1)}}`), message);
    return { info: observe, warn: observe, error: observe, debug: observe, written };
  }
}

const UNREAD = { set: () => {} };

/** Metrics for dashboards are not checked here. */
const METRICS = {
  journalUnsettled: UNREAD,
  journalOldest: UNREAD,
  journalFill: UNREAD,
  deadLetters: UNREAD,
  unrecordedCharges: UNREAD,
  restoredCharges: { inc: () => {} },
  addUsd: () => {},
  storeOlder: UNREAD,
  storeBreakerOpen: UNREAD,
  storeSeconds: { observe: () => {} },
} as unknown as Metrics;
