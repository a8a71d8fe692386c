/**
 * Collections for what comes and goes with each request, with the parts of the interfaces of Map and Set that are
 * needed.
 *
 * A Map or Set whose members come and go creates a new table each time its table is full of deleted entries. V8 keeps
 * the old table pointing to the new one, for iterators. An old table that has survived two collections of the young
 * generation is not collected before the next full collection. Until then it keeps the new table, that one the next,
 * and each of them what was in flight at that time. So nearly everything that was ever a member was copied twice and
 * died in the old generation (docs/benchmarks.md).
 */

/** A linked list in the order of insertion. A removed node points to no other node. */
class Chain<P extends { before: P | undefined; after: P | undefined }> {
  first: P | undefined;
  #last: P | undefined;
  size = 0;

  /** Appends a node. */
  link(place: P): void {
    const last = this.#last;
    place.before = last;
    if (last) last.after = place;
    else this.first = place;
    this.#last = place;
    this.size++;
  }

  /** Removes a node of this list. False if it was already removed. */
  unlink(place: P): boolean {
    const { before, after } = place;
    if (before === undefined && this.first !== place) return false;
    if (before) before.after = after;
    else this.first = after;
    if (after) after.before = before;
    else this.#last = before;
    place.before = place.after = undefined;
    this.size--;
    return true;
  }

  /** All nodes at this time. */
  all(): P[] {
    const all: P[] = [];
    for (let place = this.first; place; place = place.after) all.push(place);
    return all;
  }
}

/** The node of a member; needed to remove it. */
interface TransientPlace<T> {
  value: T | undefined;
  before: TransientPlace<T> | undefined;
  after: TransientPlace<T> | undefined;
}

/** Members in the order of insertion. */
export class TransientList<T> {
  readonly #chain = new Chain<TransientPlace<T>>();

  get size(): number {
    return this.#chain.size;
  }

  /** The oldest member. */
  get first(): T | undefined {
    return this.#chain.first?.value;
  }

  /** Appends a member. @returns the node with which to remove it. */
  add(value: T): TransientPlace<T> {
    const place = { value, before: undefined, after: undefined };
    this.#chain.link(place);
    return place;
  }

  /** Removes a member of this list. False if it was already removed. */
  delete(place: TransientPlace<T>): boolean {
    if (!this.#chain.unlink(place)) return false;
    place.value = undefined;
    return true;
  }

  /** All members at this time. */
  values(): T[] {
    return this.#chain.all().map(({ value }) => value as T);
  }
}

/** A member of a map, with the next one in the same slot, and its neighbors in the order of insertion. */
interface Named<K, V> {
  readonly name: K;
  value: V | undefined;
  readonly hash: number;
  next: Named<K, V> | undefined;
  before: Named<K, V> | undefined;
  after: Named<K, V> | undefined;
}

/** A power of two; most maps have a few members at once. */
const SLOTS_FIRST = 8;
/** A larger table is released with its last member, because there is a map for each account. */
const SLOTS_KEPT = 64;
/** The length of an account's tag. Names of requests and keys are random at their ends. */
const HASHED_CHARS = 10;
/**
 * Odd and secret. Tags come from keys that anybody can write; with a known multiplier, thousands of tags could be made
 * to fall into one slot (with 31, adding and removing a name among 4,000 such took 74 us; now 0.3, as for any names).
 */
const MULTIPLIER = (crypto.getRandomValues(new Int32Array(1))[0] as number) | 1;

/**
 * Members by name, in the order of insertion. It has its own hash table: as a property of an object, each name would
 * first be searched among all strings that V8 has interned, and interned. Adding, finding and removing took 0.9 us that
 * way, and takes 0.3.
 */
export class TransientMap<K extends string, V> {
  /** The first member of each slot. */
  #slots = emptySlots<Named<K, V>>(SLOTS_FIRST);
  readonly #chain = new Chain<Named<K, V>>();

  get size(): number {
    return this.#chain.size;
  }

  /** The value of the oldest member. */
  get first(): V | undefined {
    return this.#chain.first?.value;
  }

  get(name: K): V | undefined {
    return this.#find(name, hashOf(name))?.value;
  }

  has(name: K): boolean {
    return this.#find(name, hashOf(name)) !== undefined;
  }

  /** Adds a member, or replaces the value of an existing one, which keeps its position. */
  set(name: K, value: V): void {
    const hash = hashOf(name);
    const known = this.#find(name, hash);
    if (known) {
      known.value = value;
      return;
    }
    if (this.#chain.size === this.#slots.length) this.#grow();
    const member: Named<K, V> = { name, value, hash, next: undefined, before: undefined, after: undefined };
    this.#chain.link(member);
    this.#hang(member);
  }

  /** Removes a member. False if there is none of this name. */
  delete(name: K): boolean {
    const member = this.#remove(name);
    if (member) member.value = undefined;
    return member !== undefined;
  }

  /** Removes a member. @returns its value. */
  take(name: K): V | undefined {
    const member = this.#remove(name);
    if (!member) return undefined;
    const { value } = member;
    member.value = undefined;
    return value;
  }

  /** All members at this time. */
  entries(): (readonly [K, V])[] {
    return this.#chain.all().map(({ name, value }) => [name, value as V]);
  }

  values(): V[] {
    return this.#chain.all().map(({ value }) => value as V);
  }

  #remove(name: K): Named<K, V> | undefined {
    const slot = hashOf(name) & (this.#slots.length - 1);
    let before: Named<K, V> | undefined;
    let member = this.#slots[slot];
    while (member && member.name !== name) {
      before = member;
      member = member.next;
    }
    if (!member) return undefined;
    if (before) before.next = member.next;
    else this.#slots[slot] = member.next;
    member.next = undefined;
    this.#chain.unlink(member);
    if (this.#chain.size === 0 && this.#slots.length > SLOTS_KEPT) this.#slots = emptySlots(SLOTS_FIRST);
    return member;
  }

  #find(name: K, hash: number): Named<K, V> | undefined {
    let member = this.#slots[hash & (this.#slots.length - 1)];
    while (member && member.name !== name) member = member.next;
    return member;
  }

  /** Puts a member in front of the others in its slot. */
  #hang(member: Named<K, V>): void {
    const slot = member.hash & (this.#slots.length - 1);
    member.next = this.#slots[slot];
    this.#slots[slot] = member;
  }

  #grow(): void {
    this.#slots = emptySlots(this.#slots.length * 2);
    for (const member of this.#chain.all()) this.#hang(member);
  }
}

function emptySlots<T>(count: number): (T | undefined)[] {
  return new Array<T | undefined>(count).fill(undefined);
}

function hashOf(name: string): number {
  let hash = name.length;
  for (let i = Math.max(0, name.length - HASHED_CHARS); i < name.length; i++) {
    hash = (Math.imul(hash, MULTIPLIER) + name.charCodeAt(i)) | 0;
  }
  return hash ^ (hash >>> 15);
}
