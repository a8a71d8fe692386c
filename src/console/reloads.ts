/** What has become of the configurations that a gateway was given, for operators to see. */
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
  /** Settings whose new values wait for a restart, as the file calls them. */
  readonly restart: readonly string[];
  /** The last one that was refused since the start. */
  readonly refused: RefusedSettings | undefined;
}

/** What has become of the configurations that a gateway was given since its start. */
export class Reloads {
  readonly #clock: Clock;
  #sinceMs: number;
  #restart: readonly string[] = [];
  #refused: RefusedSettings | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#sinceMs = clock.wallMs();
  }

  /** One was taken, as far as it does not wait for a restart. @returns what it was given */
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
