/**
 * Handles the messages of the parent in a worker, from its start to its end. It uses the gateway only through a small
 * interface, so that a test can replace it.
 */
import { errorText } from "../values/program/error-text.ts";
import type { Address } from "../values/settings.ts";
import type { FromWorker, Generation, StopMode, ToWorker, WorkerReport, WorkerStart } from "./messages.ts";

/** The gateway of one worker. */
export interface LifeGateway {
  /** Puts a configuration in force for every request from the next one on. @throws if that is not possible. */
  configure(newest: Generation): void;
  /** Starts to serve; resolves with the address. */
  open(): Promise<Address>;
  drain(): Promise<void>;
  close(): Promise<void>;
  figures(): Promise<WorkerReport>;
}

interface LifeParts {
  /**
   * Opens everything that a worker needs, with the newest configuration of the message in force. It does not listen
   * yet.
   */
  readonly prepare: (start: WorkerStart) => Promise<LifeGateway>;
  /** Sends a message. Resolves when it has been sent, or when the channel is closed. */
  readonly tell: (message: FromWorker) => Promise<void>;
  /** Ends the process. */
  readonly exit: (code: number) => void;
  /** Called with the error if the parent's configuration fails here, before this worker ends and is replaced. */
  readonly onRefused: (error: unknown) => void;
}

export class WorkerLife {
  readonly #parts: LifeParts;
  #newest: Generation | undefined;
  #gateway: LifeGateway | undefined;
  #opening: Promise<void> | undefined;
  #isOpen = false;
  /** How to stop, as soon as the gateway exists. */
  #wanted: StopMode | undefined;
  #isEnding = false;

  constructor(parts: LifeParts) {
    this.#parts = parts;
  }

  /** Whether clients are served. Until then the parent handles signals from a terminal. */
  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** Handles a message of the parent. */
  hear(message: ToWorker): void {
    switch (message.kind) {
      case "start":
        void this.#start(message);
        return;
      case "reload":
        this.#newest = message;
        // If the gateway is still being opened, this configuration is put in force before the first client is served.
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
   * Ends this worker in an orderly way, now or as soon as its gateway exists.
   * @param code exit code of the process.
   */
  stop(how: StopMode, code = 0): void {
    this.#wanted ??= how;
    if (!this.#gateway || this.#isEnding) return;
    this.#isEnding = true;
    // A part that could not be closed would keep the process alive, and nothing would end it.
    this.#stop(this.#gateway, this.#wanted, code).catch((error: unknown) => this.#fail(error));
  }

  /** Called for a defect in this process: it lets running requests finish, ends and is replaced. */
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
      // The parent has accepted this configuration. A worker that cannot apply it must not continue with an older one.
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
    // If it is not open, there are no clients to wait for.
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
