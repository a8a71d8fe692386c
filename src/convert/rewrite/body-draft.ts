/**
 * Collects edits of top-level members while rules work on a body, and splices them in at the end, so that ten rules
 * cost one copy of the body and not ten.
 */

import { objectOf } from "../../values/json-object.ts";
import type { MemberPath } from "../../values/rules.ts";
import {
  findNested,
  isJsonFault,
  type JsonLimits,
  type JsonScan,
  memberValue,
  scanJson,
  spliceJson,
  spliceNested,
} from "../../wire/json.ts";

/** Our own encoders add a few levels to what a client sent, which accept has already limited (JSON_LIMITS). */
const ENCODED_LIMITS: JsonLimits = { depthMax: 1_024, tokensMax: Number.MAX_SAFE_INTEGER };

const NULL = Buffer.from("null");

export class BodyDraft {
  readonly #body: Uint8Array;
  readonly #scan: JsonScan;
  /** Raw values of the changed members; undefined for a removed one. */
  readonly #edited = new Map<string, Uint8Array | undefined>();

  /** @param scan the scan of this body; made here if undefined. */
  constructor(body: Uint8Array, scan: JsonScan | undefined) {
    this.#body = body;
    const scanned = scan ?? scanJson(body, ENCODED_LIMITS);
    if (isJsonFault(scanned)) throw new Error("a body that was accepted or encoded here is not a JSON object");
    this.#scan = scanned;
  }

  /** The raw value of a top-level member, as edited so far; undefined if there is none. */
  value(name: string): Uint8Array | undefined {
    return this.#edited.has(name) ? this.#edited.get(name) : memberValue(this.#body, this.#scan, name);
  }

  put(name: string, raw: Uint8Array | string): void {
    this.#edited.set(name, typeof raw === "string" ? Buffer.from(raw) : raw);
  }

  remove(name: string): void {
    this.#edited.set(name, undefined);
  }

  /** Removes the member at a path, if it exists. */
  drop(path: MemberPath): void {
    const [name, inner] = split(path);
    const raw = this.value(name);
    if (raw === undefined) return;
    if (inner.length === 0) {
      this.remove(name);
      return;
    }
    const without = spliceNested(raw, inner, undefined);
    if (without !== raw) this.put(name, findNested(without, inner) ? withoutTwins(without, inner) : without);
  }

  /** Sets the member at a path to this JSON text. A value on the path that is not an object is replaced by one. */
  set(path: MemberPath, json: string): void {
    const [name, inner] = split(path);
    this.put(name, assigned(this.value(name), inner, json));
  }

  /** Like `set`, but does nothing if the client sent the member, or a value on the path that is not an object. */
  fillIn(path: MemberPath, json: string): void {
    const [name, inner] = split(path);
    const raw = this.value(name);
    for (let length = 0; raw !== undefined && length <= inner.length; length++) {
      const span = findNested(raw, inner.slice(0, length));
      if (!span) break;
      const found = raw.subarray(span.start, span.end);
      if (isNull(found)) break;
      if (length === inner.length || !isObject(found)) return;
    }
    this.set(path, json);
  }

  /** The body with all edits; the same object if there are none. */
  finish(): Uint8Array {
    const set: Record<string, Uint8Array> = Object.create(null);
    const remove: string[] = [];
    for (const [name, raw] of this.#edited) {
      if (raw === undefined) remove.push(name);
      else set[name] = raw;
    }
    return spliceJson(this.#body, this.#scan, { set, remove });
  }
}

/** Whether a raw value is null, which all three protocols read as absent. */
export function isNull(raw: Uint8Array): boolean {
  return NULL.equals(raw);
}

const OPEN_OBJECT = 0x7b;

function isObject(raw: Uint8Array): boolean {
  return raw[0] === OPEN_OBJECT;
}

function split(path: MemberPath): [name: string, inner: MemberPath] {
  return [path[0] as string, path.slice(1)];
}

function assigned(raw: Uint8Array | undefined, path: MemberPath, json: string): Uint8Array {
  if (raw === undefined || path.length === 0 || !isObject(raw)) return Buffer.from(nested(path, json));
  for (let length = 1; length < path.length; length++) {
    const prefix = path.slice(0, length);
    const span = findNested(raw, prefix);
    if (span && raw[span.start] === OPEN_OBJECT) continue;
    return spliceNested(raw, prefix, nested(path.slice(length), json));
  }
  return spliceNested(raw, path, json);
}

/** `{"a":{"b":json}}` for the path `a`, `b`. */
function nested(path: MemberPath, json: string): string {
  return path.reduceRight((inner, name) => `{${JSON.stringify(name)}:${inner}}`, json);
}

/**
 * Removes all members with this name by rewriting the object. A second one would otherwise take effect when the
 * first is removed. The object is written only once; removing the duplicates one by one would let a client choose how
 * long that takes.
 */
function withoutTwins(raw: Uint8Array, path: MemberPath): Buffer {
  const top: unknown = JSON.parse(Buffer.from(raw).toString("utf8"));
  const owner = path.slice(0, -1).reduce<unknown>((value, name) => objectOf(value)?.[name], top);
  const last = path.at(-1) as string;
  // `top` was parsed above and is not shared.
  const object = objectOf(owner) as Record<string, unknown> | undefined;
  if (object && Object.hasOwn(object, last)) delete object[last];
  return Buffer.from(JSON.stringify(top));
}
