/**
 * Collections for what comes and goes with each request, with the interfaces of Map and Set as far as they are needed.
 *
 * A Map or Set that members come to and leave makes itself a new table each time that its table is full of those that have
 * left. V8 keeps the old table pointing to the new one, for iterators, and an old table that has outlived two collections of the
 * young generation is not looked at again before the next full one: it keeps the new table, that one the next, and each of
 * them whatever was in flight when it was left. So nearly everything that ever was a member was copied twice and died among
 * the old (docs/benchmarks.md).
 */

/** Where a member is: it leaves by this. Nothing of it leads on once it has left. */
interface TransientPlace<T> {
  value: T | undefined;
  before: TransientPlace<T> | undefined;
  after: TransientPlace<T> | undefined;
}

/** Members in the order in which they came. */
export class TransientList<T> {
  #first: TransientPlace<T> | undefined;
  #last: TransientPlace<T> | undefined;
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** The one that has been here the longest. */
  get first(): T | undefined {
    return this.#first?.value;
  }

  /** Takes a member in, behind all others. @returns what it leaves by. */
  add(value: T): TransientPlace<T> {
    const place: TransientPlace<T> = { value, before: this.#last, after: undefined };
    if (this.#last) this.#last.after = place;
    else this.#first = place;
    this.#last = place;
    this.#size++;
    return place;
  }

  /** Lets a member of this list go. False when it has left already. */
  delete(place: TransientPlace<T>): boolean {
    const { before, after } = place;
    if (before === undefined && this.#first !== place) return false;
    if (before) before.after = after;
    else this.#first = after;
    if (after) after.before = before;
    else this.#last = before;
    place.value = place.before = place.after = undefined;
    this.#size--;
    return true;
  }

  /** All members as they are now. */
  values(): T[] {
    const values: T[] = [];
    for (let place = this.#first; place; place = place.after) values.push(place.value as T);
    return values;
  }
}

/** A member of a map, and the one after it in the same slot. */
interface Named<K, V> {
  readonly name: K;
  value: V;
  readonly hash: number;
  next: Named<K, V> | undefined;
  place: TransientPlace<Named<K, V>> | undefined;
}

/** A power of two; most maps have a few members at once. */
const SLOTS_FIRST = 8;
/** Names of requests, keys and accounts are random at their ends. */
const HASHED_CHARS = 8;

/**
 * Members by name, in the order in which they came. A table of our own: as a property of an object each name would first be looked
 * for among all texts that V8 has interned, and interned; to come, be found and leave took 0.9 us so, and takes 0.3.
 */
export class TransientMap<K extends string, V> {
  /** The first member of each slot. */
  #slots = emptySlots<Named<K, V>>(SLOTS_FIRST);
  readonly #list = new TransientList<Named<K, V>>();

  get size(): number {
    return this.#list.size;
  }

  /** The value of the one that has been here the longest. */
  get first(): V | undefined {
    return this.#list.first?.value;
  }

  get(name: K): V | undefined {
    return this.#find(name, hashOf(name))?.value;
  }

  has(name: K): boolean {
    return this.#find(name, hashOf(name)) !== undefined;
  }

  /** Takes a member in, or another value for one that is here, which keeps its place. */
  set(name: K, value: V): void {
    const hash = hashOf(name);
    const known = this.#find(name, hash);
    if (known) {
      known.value = value;
      return;
    }
    if (this.#list.size === this.#slots.length) this.#grow();
    const member: Named<K, V> = { name, value, hash, next: undefined, place: undefined };
    member.place = this.#list.add(member);
    this.#hang(member);
  }

  /** Lets a member go. False when there is none of this name. */
  delete(name: K): boolean {
    const slot = hashOf(name) & (this.#slots.length - 1);
    let before: Named<K, V> | undefined;
    let member = this.#slots[slot];
    while (member && member.name !== name) {
      before = member;
      member = member.next;
    }
    if (!member) return false;
    if (before) before.next = member.next;
    else this.#slots[slot] = member.next;
    member.next = undefined;
    return this.#list.delete(member.place as TransientPlace<Named<K, V>>);
  }

  /** All members as they are now. */
  entries(): (readonly [K, V])[] {
    return this.#list.values().map(({ name, value }) => [name, value]);
  }

  values(): V[] {
    return this.#list.values().map(({ value }) => value);
  }

  #find(name: K, hash: number): Named<K, V> | undefined {
    let member = this.#slots[hash & (this.#slots.length - 1)];
    while (member && member.name !== name) member = member.next;
    return member;
  }

  /** Puts a member before the others of its slot. */
  #hang(member: Named<K, V>): void {
    const slot = member.hash & (this.#slots.length - 1);
    member.next = this.#slots[slot];
    this.#slots[slot] = member;
  }

  #grow(): void {
    this.#slots = emptySlots(this.#slots.length * 2);
    for (const member of this.#list.values()) this.#hang(member);
  }
}

function emptySlots<T>(count: number): (T | undefined)[] {
  return new Array<T | undefined>(count).fill(undefined);
}

function hashOf(name: string): number {
  let hash = name.length;
  for (let i = Math.max(0, name.length - HASHED_CHARS); i < name.length; i++) {
    hash = (Math.imul(hash, 31) + name.charCodeAt(i)) | 0;
  }
  return hash ^ (hash >>> 15);
}
