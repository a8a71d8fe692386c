/**
 * What a worker does with what its parent says, from its start to its end. It knows the gateway that it runs only by the
 * few things that it asks of it, so that a test can play one.
 */
import { errorText } from "../values/program/error-text.ts";
import type { Address } from "../values/settings.ts";
import type { FromWorker, Generation, StopMode, ToWorker, WorkerReport, WorkerStart } from "./messages.ts";

/** The gateway of one worker. */
export interface LifeGateway {
  /** Takes a configuration for every request from the next one on. @throws when it cannot. */
  configure(newest: Generation): void;
  /** Begins to serve; resolves with the address. */
  open(): Promise<Address>;
  drain(): Promise<void>;
  close(): Promise<void>;
  figures(): Promise<WorkerReport>;
}

interface LifeParts {
  /** Opens all that a worker needs, with the message's newest configuration in force, and lets nobody in yet. */
  readonly prepare: (start: WorkerStart) => Promise<LifeGateway>;
  /** Resolves when the message has left, or when the channel is closed. */
  readonly tell: (message: FromWorker) => Promise<void>;
  /** Ends the process. */
  readonly exit: (code: number) => void;
  /** Called with what the parent's configuration broke here, before this worker gives its place to another one. */
  readonly onRefused: (error: unknown) => void;
}

export class WorkerLife {
  readonly #parts: LifeParts;
  #newest: Generation | undefined;
  #gateway: LifeGateway | undefined;
  #opening: Promise<void> | undefined;
  #isOpen = false;
  /** How to end, as soon as there is something to end. */
  #wanted: StopMode | undefined;
  #isEnding = false;

  constructor(parts: LifeParts) {
    this.#parts = parts;
  }

  /** Whether clients are served: until then signals of a terminal are left to the parent. */
  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** Takes a message of the parent. */
  hear(message: ToWorker): void {
    switch (message.kind) {
      case "start":
        void this.#start(message);
        return;
      case "reload":
        this.#newest = message;
        // A configuration that comes while the store is being opened is in force before the first client is served.
        if (this.#gateway) this.#configure(this.#gateway, message);
        return;
      case "open":
        if (this.#gateway && !this.#isEnding) this.#opening = this.#open(this.#gateway);
        return;
      case "ping":
        void this.#parts.tell({ kind: "pong" });
        return;
      case "metrics":
        if (this.#gateway) void this.#tellFigures(this.#gateway);
        return;
      case "stop":
        this.stop(message.how);
    }
  }

  /**
   * Ends this worker in good order, now or as soon as it has started far enough.
   * @param code of the process's exit.
   */
  stop(how: StopMode, code = 0): void {
    this.#wanted ??= how;
    if (!this.#gateway || this.#isEnding) return;
    this.#isEnding = true;
    // What could not be closed would keep the process, which nobody would end any more.
    this.#stop(this.#gateway, this.#wanted, code).catch((error: unknown) => this.#fail(error));
  }

  /** Something is wrong with this process: it serves what runs to its end, and gives its place to another one. */
  defect(error: unknown): void {
    if (this.#gateway) this.stop("drain", 1);
    else void this.#fail(error);
  }

  async #start(message: WorkerStart): Promise<void> {
    const { prepare, tell } = this.#parts;
    this.#newest = message.newest;
    try {
      const gateway = await prepare(message);
      if (this.#newest.generation !== message.newest.generation) gateway.configure(this.#newest);
      this.#gateway = gateway;
    } catch (error) {
      return this.#fail(error);
    }
    if (this.#wanted) this.stop(this.#wanted);
    else await tell({ kind: "prepared", generation: this.#newest.generation });
  }

  #configure(gateway: LifeGateway, newest: Generation): void {
    const { tell, onRefused } = this.#parts;
    try {
      gateway.configure(newest);
    } catch (error) {
      // The parent could take it. A worker that cannot must not go on by an older one.
      onRefused(error);
      this.defect(error);
      return;
    }
    void tell({ kind: "configured", generation: newest.generation });
  }

  async #open(gateway: LifeGateway): Promise<void> {
    try {
      const listen = await gateway.open();
      this.#isOpen = true;
      if (!this.#isEnding) await this.#parts.tell({ kind: "serving", listen });
    } catch (error) {
      await this.#fail(error);
    }
  }

  async #stop(gateway: LifeGateway, how: StopMode, code: number): Promise<void> {
    const { tell, exit } = this.#parts;
    void tell({ kind: "draining" });
    await this.#opening;
    // Nobody is in whom it could wait for.
    await (how === "drain" && this.#isOpen ? gateway.drain() : gateway.close());
    await this.#tellFigures(gateway);
    exit(code);
  }

  async #tellFigures(gateway: LifeGateway): Promise<void> {
    await this.#parts.tell({ kind: "metrics", figures: await gateway.figures() });
  }

  async #fail(error: unknown): Promise<void> {
    await this.#parts.tell({ kind: "failed", reason: errorText(error) });
    this.#parts.exit(1);
  }
}
