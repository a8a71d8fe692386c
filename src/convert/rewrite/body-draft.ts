/**
 * A body while rules work on it: edits of top-level members are collected and spliced in at the end, so that ten rules
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

/** Our own encoders wrap what a client sent, which accept has already bounded (JSON_LIMITS), in a few levels more. */
const ENCODED_LIMITS: JsonLimits = { depthMax: 1_024, tokensMax: Number.MAX_SAFE_INTEGER };

const NULL = Buffer.from("null");

export class BodyDraft {
  readonly #body: Uint8Array;
  readonly #scan: JsonScan;
  /** Raw values of the members that have changed; undefined where the member is gone. */
  readonly #edited = new Map<string, Uint8Array | undefined>();

  /** @param scan of this very body; made here when there is none. */
  constructor(body: Uint8Array, scan: JsonScan | undefined) {
    this.#body = body;
    const scanned = scan ?? scanJson(body, ENCODED_LIMITS);
    if (isJsonFault(scanned)) throw new Error("a body that was accepted or encoded here is not a JSON object");
    this.#scan = scanned;
  }

  /** The raw value of a top-level member, as edited so far; undefined when there is none. */
  value(name: string): Uint8Array | undefined {
    return this.#edited.has(name) ? this.#edited.get(name) : memberValue(this.#body, this.#scan, name);
  }

  put(name: string, raw: Uint8Array | string): void {
    this.#edited.set(name, typeof raw === "string" ? Buffer.from(raw) : raw);
  }

  remove(name: string): void {
    this.#edited.set(name, undefined);
  }

  /** Takes out the member that a path leads to, if it is there. */
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

  /** Sets the member at a path to this JSON text; a value on the way that is no object is replaced by one. */
  set(path: MemberPath, json: string): void {
    const [name, inner] = split(path);
    this.put(name, assigned(this.value(name), inner, json));
  }

  /** As `set`, but only where the client sent neither the member nor a value on the way that is no object. */
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

  /** The body with all edits; the very same one when there are none. */
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

/** Whether a raw value is null, which all three protocols read as "not said". */
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
 * A name that stood twice would come into force again once its twin is gone, so such an object is written anew: once,
 * since taking the twins out one by one would let a client choose how long that takes.
 */
function withoutTwins(raw: Uint8Array, path: MemberPath): Buffer {
  const top: unknown = JSON.parse(Buffer.from(raw).toString("utf8"));
  const owner = path.slice(0, -1).reduce<unknown>((value, name) => objectOf(value)?.[name], top);
  const last = path.at(-1) as string;
  // `top` was parsed above and is nobody else's.
  const object = objectOf(owner) as Record<string, unknown> | undefined;
  if (object && Object.hasOwn(object, last)) delete object[last];
  return Buffer.from(JSON.stringify(top));
}
