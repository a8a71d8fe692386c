/**
 * What of a client's body nobody reads on the way to another protocol: nothing is lost in silence (ARCHITECTURE.md
 * promise 9). One table per protocol says which members of which objects its decoder reads; every other one is named.
 */
import { isObject, type JsonObject } from "../../values/json-object.ts";
import { SURPLUS_MAX } from "../../values/members.ts";
import type { Protocol } from "../../values/protocol.ts";
import type { RestField } from "../hub.ts";

/** What is read of an object. */
export interface Reads {
  /** What every target is given, with no table of its own: nearly all members of a body, and nothing is to be said of them. */
  readonly plain: ReadonlySet<string>;
  /** For every target, or for those alone. */
  readonly read: ReadonlyMap<string, readonly Protocol[] | undefined>;
  /** What changes nothing that the client can see where it is left out (docs/translation-rules.md rule 3). */
  readonly hints: ReadonlySet<string>;
  /** Members of the protocol that mean something and are not read. */
  readonly lost: ReadonlySet<string>;
  /** Members whose `false` asks for something; of all others that are known it says nothing. */
  readonly refusals: ReadonlySet<string>;
  /** Values by member that ask for what happens anyway. */
  readonly unsaid: ReadonlyMap<string, readonly unknown[]>;
  readonly inside: Readonly<Record<string, Inside>>;
}

/** The object below a member or, in a list, each; undefined: one that is left out, or refused, as a whole. */
export type Inside = Reads | ((value: JsonObject) => Reads | undefined);

interface ReadNames extends Partial<Readonly<Record<Protocol, string>>> {
  readonly read?: string;
  readonly hint?: string;
  readonly lost?: string;
  readonly refusals?: string;
  readonly unsaid?: Readonly<Record<string, readonly unknown[]>>;
}

/**
 * Makes a table.
 * @param names separated by blanks; under a protocol: what that target is given, and others are not.
 * @param inside the tables of objects; a member with one is read unless it is named.
 */
export function reads(
  { read = "", hint = "", lost = "", refusals = "", unsaid = {}, ...only }: ReadNames,
  inside: Reads["inside"] = {},
): Reads {
  const carried = new Map<string, readonly Protocol[] | undefined>();
  const hints = new Set(listed(hint));
  const known = new Set(listed(lost));
  for (const [target, names] of Object.entries(only)) {
    for (const name of listed(names)) carried.set(name, [...(carried.get(name) ?? []), target as Protocol]);
  }
  const whole = Object.keys(inside).filter((name) => !carried.has(name) && !hints.has(name) && !known.has(name));
  for (const name of [...listed(read), ...whole]) carried.set(name, undefined);
  const silent = new Map(Object.entries(unsaid));
  const plain = new Set(
    [...carried].flatMap(([name, targets]) => (targets || Object.hasOwn(inside, name) ? [] : [name])),
  );
  return { plain, read: carried, hints, lost: known, refusals: new Set(listed(refusals)), unsaid: silent, inside };
}

function listed(names: string): readonly string[] {
  return names.split(/\s+/).filter((name) => name !== "");
}

/** The forms of the elements of a list by one of their members. */
export function byMember(name: string, forms: Readonly<Record<string, Reads>>, other?: string): Inside {
  return (value) => {
    const form = value[name] ?? other;
    return typeof form === "string" && Object.hasOwn(forms, form) ? forms[form] : undefined;
  };
}

/**
 * Every member that is not read, once, by its names without indices.
 * @param conversation the members whose objects may have names that nobody has looked at yet.
 */
export function unreadOf(json: JsonObject, table: Reads, conversation: readonly string[]): readonly RestField[] {
  const finder = new Finder();
  for (const [name, value] of Object.entries(json)) {
    finder.isOpen = conversation.includes(name);
    finder.member(table, "", name, value);
  }
  return [...finder.found.values()];
}

class Finder {
  readonly found = new Map<string, RestField>();
  /** Whether a name may be the client's own invention. */
  isOpen = false;

  member(table: Reads, path: string, name: string, value: unknown): void {
    if (table.plain.has(name)) return; // First: with all of a long conversation the rest takes as long as its parsing.
    if (isEmpty(value) || table.unsaid.get(name)?.some((one) => isSame(one, value))) return;
    const isRead = table.read.has(name);
    const targets = table.read.get(name);
    const inner = Object.hasOwn(table.inside, name) ? table.inside[name] : undefined;
    const param = path === "" ? name : `${path}.${name}`;
    if (!isRead || targets) this.#note(param, value, table, name, targets);
    if (inner !== undefined) this.#inside(inner, param, value);
  }

  #inside(inner: Inside, path: string, value: unknown): void {
    for (const one of Array.isArray(value) ? value : [value]) {
      if (!isObject(one)) continue;
      const table = typeof inner === "function" ? inner(one) : inner;
      if (table === undefined) continue;
      // A parsed object has no members but its own, and no list of them is made.
      for (const name in one) this.member(table, path, name, one[name]);
    }
  }

  #note(param: string, value: unknown, table: Reads, name: string, carriedBy: readonly Protocol[] | undefined): void {
    if (this.found.has(param) || this.found.size >= SURPLUS_MAX) return;
    const weight = table.hints.has(name) ? "hint" : "meaning";
    const isKnown = !this.isOpen || weight === "hint" || carriedBy !== undefined || table.lost.has(name);
    // What `false` means to a name that nobody knows, nobody knows.
    if (value === false && isKnown && !table.refusals.has(name)) return;
    this.found.set(param, { param, value, weight, carriedBy, isUnlisted: !isKnown });
  }
}

/** Whether a value asks for nothing, in any member. */
function isEmpty(value: unknown): boolean {
  if (value === undefined || value === null || value === "") return true;
  return typeof value === "object" && Object.keys(value).length === 0;
}

/** Whether two values are the same, down to the members of an object: what is compared is no deeper. */
function isSame(one: unknown, other: unknown): boolean {
  if (one === other) return true;
  if (typeof one !== "object" || typeof other !== "object" || one === null || other === null) return false;
  const [members, others] = [Object.entries(one), Object.entries(other)];
  return members.length === others.length && members.every(([name, value], at) => isPair(others[at], name, value));
}

function isPair(pair: readonly [string, unknown] | undefined, name: string, value: unknown): boolean {
  return pair?.[0] === name && pair[1] === value;
}
