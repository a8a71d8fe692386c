import { inspect } from "node:util";

/**
 * A credential that prints as `***` when it is shown by accident: string conversion, JSON, inspection, logs
 * (docs/failure-model.md row 79). Only `reveal` gives the text; searching for that word finds every use.
 */
export class Secret {
  readonly #text: string;

  constructor(text: string) {
    this.#text = text;
  }

  /** The text itself; for the one place that must send it. */
  reveal(): string {
    return this.#text;
  }

  toString(): string {
    return "***";
  }

  toJSON(): string {
    return "***";
  }

  [inspect.custom](): string {
    return "***";
  }
}
