/**
 * Whether the model that answered is the one that was asked for, by the names in the upstream's own reply. A vendor may
 * answer with another model than the body names: because an alias moved, because the account has a fallback switched
 * on, or because of a switch unknown to us.
 */
import { arrayOf, type JsonObject, objectOf } from "../values/json-object.ts";

/** Suffixes for versions of one model: dates, builds and the words for the newest one. */
const VERSION =
  /(?:[-@:.]v?(?:\d{8}|\d{6}|\d{4}-\d{2}-\d{2}|\d{2}-\d{4}|\d{2}-\d{2}|\d{4}|\d{3})|[-:@](?:latest|default))$/;
/** A build number, as some clouds write it: `-v1:0`. */
const BUILD = /[-:]v\d+(?::\d+)?$/;
/** The most version suffixes that are removed. */
const VERSIONS_MAX = 3;
/** The most characters of an upstream's name that are kept. */
const NAME_CHARS_MAX = 128;

/** The name without vendor, region and version; equal for all names of one model. */
export function bareName(name: string): string {
  let bare = name.slice(name.lastIndexOf("/") + 1).toLowerCase();
  for (let i = 0; i < VERSIONS_MAX; i++) bare = bare.replace(BUILD, "").replace(VERSION, "");
  return bare;
}

/** Whether the name that an upstream answers with means the model that it was asked for. */
export function isSameModel(asked: string, answered: string, aliases: readonly string[] = []): boolean {
  if (answered === asked || aliases.includes(answered) || aliases.includes("*")) return true;
  const [one, other] = [bareName(asked), bareName(answered)];
  // Clouds put vendor and region before the name: `us.anthropic.`.
  return one === other || other.endsWith(`.${one}`) || one.endsWith(`.${other}`);
}

/** Watches the model names of one reply. */
export class AnsweredModel {
  /** The first name that is not the model asked for. */
  other: string | undefined;
  readonly #asked: string;
  readonly #aliases: readonly string[] | undefined;
  #last: unknown;

  constructor(asked: string, aliases: readonly string[] | undefined) {
    this.#asked = asked;
    this.#aliases = aliases;
  }

  /** Looks at a whole reply, a chunk or an event of any protocol. */
  see(payload: JsonObject): void {
    this.#name(payload.model);
    this.#name(objectOf(payload.message)?.model);
    this.#name(objectOf(payload.response)?.model);
    // Messages: from this block on, a fallback model writes.
    this.#fallback(payload.content_block);
    for (const block of arrayOf(payload.content)) this.#fallback(block);
  }

  /** What it adds to the counts of an attempt. */
  get noted(): { readonly answeredBy?: string } {
    return this.other === undefined ? {} : { answeredBy: this.other };
  }

  #fallback(value: unknown): void {
    const block = objectOf(value);
    if (block?.type === "fallback") this.#name(objectOf(block.to)?.model);
  }

  #name(name: unknown): void {
    if (typeof name !== "string" || name === "" || name === this.#last || this.other !== undefined) return;
    this.#last = name;
    if (!isSameModel(this.#asked, name, this.#aliases)) this.other = name.slice(0, NAME_CHARS_MAX);
  }
}
