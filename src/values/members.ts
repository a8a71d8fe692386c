/**
 * Which members a request's body may have, and what happens to the others: what a request may buy is listed, not
 * guessed (ARCHITECTURE.md promise 14). The tables are in `members/`, one file per protocol. Here they are compared
 * with the bytes of a body, so that a repeated name, or a name with escapes, cannot mean one thing here and another
 * upstream.
 */
import { type JsonScan, type MemberCut, visitNames, withoutMembers } from "../wire/json.ts";
import { CHAT } from "./members/chat.ts";
import { MESSAGES } from "./members/messages.ts";
import { RESPONSES } from "./members/responses.ts";
import { isOverlong, type MemberMeaning, mistakenFor, type Shape } from "./members/shape.ts";
import type { Protocol } from "./protocol.ts";

export type { MemberMeaning, Shape } from "./members/shape.ts";

/** The members of a request by protocol. */
export const MEMBERS: Readonly<Record<Protocol, Shape>> = { chat: CHAT, messages: MESSAGES, responses: RESPONSES };

/** The members of any protocol that ask for an extra; `price.options` may name these. */
export const OPTION_MEMBERS: ReadonlySet<string> = new Set(
  Object.values(MEMBERS).flatMap(({ meanings }) =>
    [...meanings].flatMap(([name, meaning]) => (meaning === "option" ? [name] : [])),
  ),
);

/** Unlisted members that an upstream gets because of its configuration. */
export interface PassedMembers {
  /** Whether it gets all of them. */
  readonly all: boolean;
  /** Those that it gets by name; nested ones with a dot (`reasoning.budget`). */
  readonly names: ReadonlySet<string>;
}

export const NONE_PASSED: PassedMembers = Object.freeze({ all: false, names: new Set<string>() });

/** Why a body must be refused because of a member's name. */
export interface NameFault {
  /**
   * `many`: more than `UNLISTED_MAX` names are not listed; `path` and `known` are those of the first name above the
   * limit.
   */
  readonly fault: "mistaken" | "escaped" | "duplicate" | "many";
  /** The name as written (escapes decoded), preceded by the names of its parents. */
  readonly path: string;
  /** The known name that it could be mistaken for, or that it is. */
  readonly known: string;
}

interface Inspected {
  readonly fault: NameFault | undefined;
  /**
   * Dotted paths of the members that an upstream gets only if configured, each once, in order; at most `SURPLUS_MAX`.
   */
  readonly surplus: readonly string[];
}

/** More names than any header repeats and any person reads. */
export const SURPLUS_MAX = 100;

/** Maximum of unlisted names in a body, because each of them costs a comparison and a removal. */
export const UNLISTED_MAX = 10_000;

const NO_PATHS: readonly string[] = [];

/** Checks every name that the protocol's shape covers. @param scan of this same body. */
export function inspectMembers(protocol: Protocol, body: Uint8Array, scan: JsonScan): Inspected {
  const inspector = new NameInspector();
  const top: ObjectPlace = { shape: MEMBERS[protocol], path: "" };
  for (const { name, nameStart, valueStart } of scan.members) {
    const inner = inspector.see(name, isWrittenAt(body, nameStart, name), false, top);
    if (inner) visitNames(body, valueStart, inner, inspector.see);
    if (inspector.fault) break;
  }
  return { fault: inspector.fault, surplus: inspector.surplus.size === 0 ? NO_PATHS : [...inspector.surplus] };
}

/** The object that holds a name: its allowed members, and the names of its parents, each followed by a dot. */
interface ObjectPlace {
  readonly shape: Shape;
  readonly path: string;
}

class NameInspector {
  fault: NameFault | undefined;
  readonly surplus = new Set<string>();
  #unlisted = 0;

  /** @returns the place of the name's value, if the names in it matter. */
  readonly see = (
    name: string,
    plain: boolean,
    again: boolean,
    { shape, path }: ObjectPlace,
  ): ObjectPlace | undefined => {
    if (this.fault) return undefined;
    const meaning = shape.meanings.get(name);
    if (again) this.#blame("duplicate", path + name, name);
    if (meaning === undefined || meaning === "envelope") {
      const known = meaning === undefined ? mistakenFor(name, shape) : undefined;
      if (known !== undefined) this.#blame("mistaken", path + name, known);
      if (++this.#unlisted > UNLISTED_MAX) this.#blame("many", path + name, name);
      if (this.surplus.size < SURPLUS_MAX) this.surplus.add(path + name);
    }
    if (meaning === undefined) return undefined;
    if (!plain) this.#blame("escaped", path + name, name);
    const inner = shape.inside.get(name);
    return inner && { shape: inner, path: `${path}${name}.` };
  };

  /** Only the first fault is reported. */
  #blame(fault: NameFault["fault"], path: string, known: string): void {
    this.fault ??= { fault, path, known };
  }
}

/** Whether the name at `at` is written without escapes; only for names in ASCII. */
function isWrittenAt(body: Uint8Array, at: number, name: string): boolean {
  for (let i = 0; i < name.length; i++) if (body[at + 1 + i] !== name.charCodeAt(i)) return false;
  return body[at + 1 + name.length] === QUOTE;
}

const QUOTE = 0x22;

interface Pruned {
  /** Top-level members to remove. */
  readonly remove: readonly string[];
  /** Top-level members whose value has lost something, as raw JSON. */
  readonly set: Readonly<Record<string, Uint8Array>>;
  /** Dotted paths of everything that is left out, each once; at most `SURPLUS_MAX`. */
  readonly dropped: readonly string[];
}

/** What must be removed from a body before an upstream gets it. @param scan of this same body. */
export function pruneMembers(protocol: Protocol, body: Uint8Array, scan: JsonScan, passed: PassedMembers): Pruned {
  const top = MEMBERS[protocol];
  const pruner = new Pruner(passed);
  const remove: string[] = [];
  const set: Record<string, Uint8Array> = Object.create(null);
  for (const { name, valueStart, valueEnd } of scan.members) {
    const cut = pruner.cutOf(name, { shape: top, path: "" });
    if (cut === "remove") remove.push(name);
    if (typeof cut === "string") continue;
    const raw = body.subarray(valueStart, valueEnd);
    const pruned = withoutMembers(raw, cut.under, pruner.cutOf);
    if (pruned !== raw) set[name] = pruned;
  }
  return { remove, set, dropped: [...pruner.dropped] };
}

class Pruner {
  readonly dropped = new Set<string>();
  readonly #passed: PassedMembers;

  constructor(passed: PassedMembers) {
    this.#passed = passed;
  }

  readonly cutOf = (name: string, { shape, path }: ObjectPlace): MemberCut<ObjectPlace> => {
    const here = path + name;
    const meaning = shape.meanings.get(name);
    const stays = meaning === undefined ? this.#passes(name, here, shape) : this.#keepsKnown(meaning, here);
    if (!stays) {
      if (this.dropped.size < SURPLUS_MAX) this.dropped.add(here);
      return "remove";
    }
    const inner = shape.inside.get(name);
    return inner ? { under: { shape: inner, path: `${here}.` } } : "keep";
  };

  #keepsKnown(meaning: MemberMeaning, path: string): boolean {
    return meaning !== "envelope" || this.#passed.names.has(path);
  }

  #passes(name: string, path: string, shape: Shape): boolean {
    const { all, names } = this.#passed;
    // A name that could be mistaken for a known one was refused earlier. If not, it must not pass here.
    return (all || names.has(path)) && !isOverlong(name) && mistakenFor(name, shape) === undefined;
  }
}
