/**
 * Collections for what comes and goes with each request, with the interfaces of Map and Set as far as they are needed.
 *
 * A Map or Set that members come to and leave makes itself a new table each time that its table is full of those that have
 * left. V8 keeps the old table pointing to the new one, for iterators, and an old table that has outlived two collections of the
 * young generation is not looked at again before the next full one: it keeps the new table, that one the next, and each of
 * them whatever was in flight when it was left. So nearly everything that ever was a member was copied twice and died among
 * the old (docs/benchmarks.md).
 */

/** One after another, in the order in which they came. Nothing of one that has left leads on. */
class Chain<P extends { before: P | undefined; after: P | undefined }> {
  first: P | undefined;
  #last: P | undefined;
  size = 0;

  /** Takes one in, behind all others. */
  link(place: P): void {
    const last = this.#last;
    place.before = last;
    if (last) last.after = place;
    else this.first = place;
    this.#last = place;
    this.size++;
  }

  /** Lets one of this chain go. False when it has left already. */
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

  /** All as they are now. */
  all(): P[] {
    const all: P[] = [];
    for (let place = this.first; place; place = place.after) all.push(place);
    return all;
  }
}

/** Where a member is: it leaves by this. */
interface TransientPlace<T> {
  value: T | undefined;
  before: TransientPlace<T> | undefined;
  after: TransientPlace<T> | undefined;
}

/** Members in the order in which they came. */
export class TransientList<T> {
  readonly #chain = new Chain<TransientPlace<T>>();

  get size(): number {
    return this.#chain.size;
  }

  /** The one that has been here the longest. */
  get first(): T | undefined {
    return this.#chain.first?.value;
  }

  /** Takes a member in, behind all others. @returns what it leaves by. */
  add(value: T): TransientPlace<T> {
    const place = { value, before: undefined, after: undefined };
    this.#chain.link(place);
    return place;
  }

  /** Lets a member of this list go. False when it has left already. */
  delete(place: TransientPlace<T>): boolean {
    if (!this.#chain.unlink(place)) return false;
    place.value = undefined;
    return true;
  }

  /** All members as they are now. */
  values(): T[] {
    return this.#chain.all().map(({ value }) => value as T);
  }
}

/** A member of a map, with the one after it in the same slot, and those that came before and after it. */
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
/** A table of more than these is given up with its last member: there is a map for each account. */
const SLOTS_KEPT = 64;
/** As many as an account's tag has. Names of requests and keys are random at their ends. */
const HASHED_CHARS = 10;
/**
 * Odd, and nobody's to know: tags are read from keys that strangers write, who could otherwise make thousands of one slot (with 31 a
 * name among 4,000 such took 74 us to come and leave; now 0.3, as among any).
 */
const MULTIPLIER = (crypto.getRandomValues(new Int32Array(1))[0] as number) | 1;

/**
 * Members by name, in the order in which they came. A table of our own: as a property of an object each name would first be looked
 * for among all texts that V8 has interned, and interned; to come, be found and leave took 0.9 us so, and takes 0.3.
 */
export class TransientMap<K extends string, V> {
  /** The first member of each slot. */
  #slots = emptySlots<Named<K, V>>(SLOTS_FIRST);
  readonly #chain = new Chain<Named<K, V>>();

  get size(): number {
    return this.#chain.size;
  }

  /** The value of the one that has been here the longest. */
  get first(): V | undefined {
    return this.#chain.first?.value;
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
    if (this.#chain.size === this.#slots.length) this.#grow();
    const member: Named<K, V> = { name, value, hash, next: undefined, before: undefined, after: undefined };
    this.#chain.link(member);
    this.#hang(member);
  }

  /** Lets a member go. False when there is none of this name. */
  delete(name: K): boolean {
    const member = this.#remove(name);
    if (member) member.value = undefined;
    return member !== undefined;
  }

  /** Lets a member go. @returns its value. */
  take(name: K): V | undefined {
    const member = this.#remove(name);
    if (!member) return undefined;
    const { value } = member;
    member.value = undefined;
    return value;
  }

  /** All members as they are now. */
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

  /** Puts a member before the others of its slot. */
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
