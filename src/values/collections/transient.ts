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

/** Members by name, in the order in which they came. */
export class TransientMap<K extends string, V> {
  /** Without a prototype, so that any name will do; such an object is a table from the beginning, and lets its old ones go. */
  readonly #places: Record<string, TransientPlace<readonly [K, V]>> = Object.create(null);
  readonly #list = new TransientList<readonly [K, V]>();

  get size(): number {
    return this.#list.size;
  }

  /** The value of the one that has been here the longest. */
  get first(): V | undefined {
    return this.#list.first?.[1];
  }

  get(name: K): V | undefined {
    return this.#places[name]?.value?.[1];
  }

  has(name: K): boolean {
    return this.#places[name] !== undefined;
  }

  /** Takes a member in, or another value for one that is here, which keeps its place. */
  set(name: K, value: V): void {
    const place = this.#places[name];
    if (place) place.value = [name, value];
    else this.#places[name] = this.#list.add([name, value]);
  }

  /** Lets a member go. False when there is none of this name. */
  delete(name: K): boolean {
    const place = this.#places[name];
    if (!place) return false;
    delete this.#places[name];
    return this.#list.delete(place);
  }

  /** All members as they are now. */
  entries(): (readonly [K, V])[] {
    return this.#list.values();
  }

  values(): V[] {
    return this.entries().map(([, value]) => value);
  }
}
