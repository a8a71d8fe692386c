/** The history of the configurations that a gateway has loaded, for operators. */
import type { JsonObject } from "../values/json-object.ts";
import type { Clock } from "../values/time.ts";

/** Why a configuration was refused. */
export interface RefusedSettings {
  readonly atMs: number;
  readonly problems: readonly {
    readonly file: string;
    readonly line: number;
    readonly column: number;
    readonly key: string;
    readonly message: string;
  }[];
}

export interface SettingsInForce {
  /** By the names and in the units of the file; each secret is a `Secret`. */
  readonly settings: JsonObject;
  readonly generation: number;
  readonly sinceMs: number;
  /** Settings whose new values take effect after a restart, by their names in the file. */
  readonly restart: readonly string[];
  /** The last configuration that was refused since the start. */
  readonly refused: RefusedSettings | undefined;
}

/** What became of each configuration that the gateway was given since its start. */
export class Reloads {
  readonly #clock: Clock;
  #sinceMs: number;
  #restart: readonly string[] = [];
  #refused: RefusedSettings | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#sinceMs = clock.wallMs();
  }

  /** Records that a configuration was accepted, except for settings that wait for a restart. @returns its argument */
  accepted<D extends { readonly restart: readonly string[] }>(differences: D): D {
    this.#sinceMs = this.#clock.wallMs();
    this.#restart = differences.restart;
    return differences;
  }

  refused(problems: RefusedSettings["problems"]): void {
    this.#refused = { atMs: this.#clock.wallMs(), problems };
  }

  show(settings: JsonObject, generation: number): SettingsInForce {
    return { settings, generation, sinceMs: this.#sinceMs, restart: this.#restart, refused: this.#refused };
  }
}
