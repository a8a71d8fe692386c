/**
 * Finds the members of a client's body that are not read for another protocol, because nothing may be lost silently
 * (ARCHITECTURE.md promise 9). One table per protocol says which members of which objects its decoder reads; every
 * other one is named.
 */
import { isObject, type JsonObject } from "../../values/json-object.ts";
import { SURPLUS_MAX } from "../../values/members.ts";
import type { Protocol } from "../../values/protocol.ts";
import type { RestField } from "../hub.ts";

/** Which members of one object are read. */
export interface Reads {
  /**
   * Members that every target gets and that have no table of their own. Nearly all members of a body are; they need no
   * further check.
   */
  readonly plain: ReadonlySet<string>;
  /** Members that are read, with the targets that get them; undefined: every target. */
  readonly read: ReadonlyMap<string, readonly Protocol[] | undefined>;
  /** Members whose absence changes nothing that the client can notice (docs/translation-rules.md rule 3). */
  readonly hints: ReadonlySet<string>;
  /** Members of the protocol that have a meaning and are not read. */
  readonly lost: ReadonlySet<string>;
  /** Members whose `false` has a meaning. In every other known member it has none. */
  readonly refusals: ReadonlySet<string>;
  /** Values, by member, that ask for what happens anyway. */
  readonly unsaid: ReadonlyMap<string, readonly unknown[]>;
  readonly inside: Readonly<Record<string, Inside>>;
}

/**
 * The table of the object in a member, or of each object in a list. Undefined: the object is left out or refused as a
 * whole.
 */
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
 * @param names separated by blanks; those under a protocol are given to that target only.
 * @param inside the tables of nested objects; their members count as read unless `names` says otherwise.
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

/** Chooses the table of a list element by the value of one of its members. */
export function byMember(name: string, forms: Readonly<Record<string, Reads>>, other?: string): Inside {
  return (value) => {
    const form = value[name] ?? other;
    return typeof form === "string" && Object.hasOwn(forms, form) ? forms[form] : undefined;
  };
}

/**
 * Each member that is not read, once, as its path without indices.
 * @param conversation the members whose objects have not been checked for unknown names yet.
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
  /** Whether the client may have invented a name here. */
  isOpen = false;

  member(table: Reads, path: string, name: string, value: unknown): void {
    if (table.plain.has(name)) return; // First, because in a long conversation the rest takes as long as its parsing.
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
      // A parsed object has only its own members, and `in` makes no list of them.
      for (const name in one) this.member(table, path, name, one[name]);
    }
  }

  #note(param: string, value: unknown, table: Reads, name: string, carriedBy: readonly Protocol[] | undefined): void {
    if (this.found.has(param) || this.found.size >= SURPLUS_MAX) return;
    const weight = table.hints.has(name) ? "hint" : "meaning";
    const isKnown = !this.isOpen || weight === "hint" || carriedBy !== undefined || table.lost.has(name);
    // The meaning of `false` is unknown for an unknown name.
    if (value === false && isKnown && !table.refusals.has(name)) return;
    this.found.set(param, { param, value, weight, carriedBy, isUnlisted: !isKnown });
  }
}

/** Whether a value asks for nothing, in any member. */
function isEmpty(value: unknown): boolean {
  if (value === undefined || value === null || value === "") return true;
  return typeof value === "object" && Object.keys(value).length === 0;
}

/** Whether two values are equal; compares the members of an object, but nothing deeper. */
function isSame(one: unknown, other: unknown): boolean {
  if (one === other) return true;
  if (typeof one !== "object" || typeof other !== "object" || one === null || other === null) return false;
  const [members, others] = [Object.entries(one), Object.entries(other)];
  return members.length === others.length && members.every(([name, value], at) => isPair(others[at], name, value));
}

function isPair(pair: readonly [string, unknown] | undefined, name: string, value: unknown): boolean {
  return pair?.[0] === name && pair[1] === value;
}
