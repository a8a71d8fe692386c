/** The gateways: processes that are killed, frozen and restarted, each with its own journal. */
import { type GatewayProcess, spawnGateway } from "../../rig/gateway.ts";
import { lasting } from "./stores/store.ts";

/** The log event for a charge that the store had lost and got back (docs/log.md). */
const RESTORED = '"event":"charge_restored"';

interface Place {
  readonly config: string;
  /** Undefined while it is down. */
  running: GatewayProcess | undefined;
}

export class Fleet {
  readonly #places: readonly Place[];
  /** Requests whose charge a store had lost and got back, according to the logs. */
  readonly restored = new Set<string>();

  constructor(configs: readonly string[]) {
    this.#places = configs.map((config) => ({ config, running: undefined }));
  }

  get size(): number {
    return this.#places.length;
  }

  /** Undefined while that gateway is down. */
  at(number: number): GatewayProcess | undefined {
    return this.#places[number]?.running;
  }

  /** The gateways that run, including a frozen one. */
  get running(): readonly GatewayProcess[] {
    return this.#places.flatMap(({ running }) => running ?? []);
  }

  async start(number: number): Promise<void> {
    const place = this.#place(number);
    place.running = await spawnGateway(place.config);
  }

  async startAll(): Promise<void> {
    await Promise.all(this.#places.map((_, number) => this.start(number)));
  }

  async kill(number: number): Promise<void> {
    const place = this.#place(number);
    const dying = place.running;
    if (!dying) return;
    await dying.stop("SIGKILL");
    place.running = undefined;
    this.#read(dying);
  }

  async killAll(): Promise<void> {
    await Promise.all(this.#places.map((_, number) => this.kill(number)));
  }

  async freeze(number: number, ms: number): Promise<void> {
    const child = this.at(number)?.child;
    child?.kill("SIGSTOP");
    await lasting(ms);
    child?.kill("SIGCONT");
  }

  /** Reads what the running gateways have logged so far. */
  read(): void {
    for (const running of this.running) this.#read(running);
  }

  #read(gateway: GatewayProcess): void {
    for (const line of gateway.output().split("\n")) {
      if (line.includes(RESTORED)) this.restored.add((JSON.parse(line) as { request: string }).request);
    }
  }

  #place(number: number): Place {
    const place = this.#places[number];
    if (!place) throw new Error(`gateway ${number} does not exist`);
    return place;
  }
}
