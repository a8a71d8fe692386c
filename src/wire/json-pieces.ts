/**
 * Reads a large body in small steps, so that other work can run in between. JSON.parse cannot be interrupted: it takes
 * from 70 to 350 ms for 30 MB made to be slow, 30 to 80 ms for an ordinary body. The result is the same as
 * JSON.parse's.
 */
import { isUtf8 } from "node:buffer";
import { JSON_LIMITS, type JsonFault, type JsonLimits } from "./json-fault.ts";
import { isJsonFault, type JsonScan, JsonScanner, type LongValue, scanJson, scanParsedJson } from "./json-scan.ts";
import { BACKSLASH, decodeString, OPEN_ARRAY, QUOTE, skipInString, skipSpace, skipString } from "./json-tokens.ts";
import { asBuffer, decodeUtf8 } from "./utf8.ts";

/** Called between two steps; returns a promise if others should run first. */
export type Pause = () => Promise<void> | undefined;

export interface ReadJson {
  readonly scan: JsonScan;
  readonly json: Readonly<Record<string, unknown>>;
}

/** The size of a step, in bytes. */
export interface StepSizes {
  /** Scanned at once. */
  readonly scan: number;
  /** Passed to JSON.parse at once. The slowest 16 KiB that were found take 2 ms. */
  readonly parse: number;
  /** Part of a string that is passed to JSON.parse at once, which reads strings a hundred times as fast as objects. */
  readonly text: number;
}

const STEP_SIZES: StepSizes = { scan: 65_536, parse: 16_384, text: 262_144 };

const NOT_UTF8: JsonFault = { fault: "not_json", at: 0, reason: "The body must be one JSON object in UTF-8." };

/**
 * Scans and parses at once a body that must be one JSON object; for bodies that are not large.
 * @returns the faults of `scanJson`, or `not_json` for bytes that are not UTF-8.
 */
export function readJson(body: Uint8Array, limits: JsonLimits = JSON_LIMITS): ReadJson | JsonFault {
  const text = decodeUtf8(body);
  const json = text === undefined ? undefined : parsed(text);
  // What JSON.parse accepts may still not be an object, or exceed a limit. For what it rejects, the scan gives the
  // reason.
  const scan = json === undefined ? scanJson(body, limits) : scanParsedJson(body, limits, namesOf(json));
  if (isJsonFault(scan)) return scan;
  return json === undefined ? NOT_UTF8 : { scan, json: json as ReadJson["json"] };
}

/** None for an array, which would have one name for each of its elements. */
function namesOf(json: unknown): readonly string[] {
  return typeof json === "object" && json !== null && !Array.isArray(json) ? Object.keys(json) : [];
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** `readJson` in steps. */
export async function readJsonInSteps(
  body: Uint8Array,
  pause: Pause,
  limits: JsonLimits = JSON_LIMITS,
  sizes = STEP_SIZES,
): Promise<ReadJson | JsonFault> {
  const scanner = new JsonScanner(body, limits, { longBytes: sizes.parse });
  const scan = await inSteps(scanner, pause, sizes.scan);
  if (isJsonFault(scan)) return scan;
  // A byte order mark is not the beginning of an object.
  if (!isUtf8(body)) return NOT_UTF8;
  const pieces = new Pieces(asBuffer(body), scanner.longValues, pause, sizes.text);
  return { scan, json: (await pieces.value(skipSpace(body, 0), body.length)) as ReadJson["json"] };
}

/** `scanJson` in steps. */
export function scanJsonInSteps(body: Uint8Array, pause: Pause, limits: JsonLimits = JSON_LIMITS) {
  return inSteps(new JsonScanner(body, limits), pause, STEP_SIZES.scan);
}

async function inSteps(scanner: JsonScanner, pause: Pause, byteCount: number): Promise<JsonScan | JsonFault> {
  for (;;) {
    const scan = scanner.advance(byteCount);
    if (scan) return scan;
    await pause();
  }
}

class Pieces {
  readonly #body: Buffer;
  readonly #longValues: ReadonlyMap<number, LongValue>;
  readonly #pause: Pause;
  readonly #textBytes: number;

  constructor(body: Buffer, longValues: ReadonlyMap<number, LongValue>, pause: Pause, textBytes: number) {
    this.#body = body;
    this.#longValues = longValues;
    this.#pause = pause;
    this.#textBytes = textBytes;
  }

  /**
   * The value that begins at a position. Recurses only into long values, whose depth the scan bounds.
   * @param stop a position after the value and before what follows it.
   */
  async value(start: number, stop: number): Promise<unknown> {
    const long = this.#longValues.get(start);
    await this.#pause();
    if (!long) return this.#parsed(start, stop);
    const first = this.#body[start];
    if (first === QUOTE) return this.#text(start + 1, long.end - 1);
    return first === OPEN_ARRAY ? this.#array(start, long) : this.#object(start, long);
  }

  async #array(start: number, { end, cuts }: LongValue): Promise<unknown[]> {
    const elements: unknown[] = [];
    for (const [from, to] of between(start, cuts, end - 1)) {
      const at = skipSpace(this.#body, from);
      if (this.#longValues.has(at)) {
        elements.push(await this.value(at, to));
      } else {
        for (const element of this.#parsed(at, to, "[", "]") as unknown[]) elements.push(element);
        await this.#pause();
      }
    }
    return elements;
  }

  async #object(start: number, { end, cuts }: LongValue): Promise<Record<string, unknown>> {
    const members: Record<string, unknown> = {};
    for (const [from, to] of between(start, cuts, end - 1)) {
      const at = skipSpace(this.#body, from);
      const nameEnd = skipString(this.#body, at);
      const valueStart = skipSpace(this.#body, skipSpace(this.#body, nameEnd) + 1);
      if (this.#longValues.has(valueStart)) {
        setOwn(members, decodeString(this.#body, at, nameEnd), await this.value(valueStart, to));
      } else {
        const parsed = this.#parsed(at, to, "{", "}") as Record<string, unknown>;
        for (const name of Object.keys(parsed)) setOwn(members, name, parsed[name]);
        await this.#pause();
      }
    }
    return members;
  }

  /** The text between the quotes of a long string, from pieces that are not cut inside an escape or a character. */
  async #text(start: number, end: number): Promise<string> {
    const pieces: string[] = [];
    for (let at = start; at < end; ) {
      let to = Math.min(end, at + this.#textBytes);
      if (this.#body.subarray(at, to).includes(BACKSLASH)) to = skipInString(this.#body, at, to);
      while (to < end && ((this.#body[to] as number) & 0xc0) === 0x80) to++;
      pieces.push(this.#parsed(at, to, '"', '"') as string);
      at = to;
      await this.#pause();
    }
    return pieces.join("");
  }

  #parsed(start: number, end: number, opening = "", closing = ""): unknown {
    return JSON.parse(opening + this.#body.toString("utf8", start, end) + closing);
  }
}

/** The ranges between a container's opening bracket, its cuts and its closing bracket. */
function* between(
  open: number,
  cuts: readonly number[],
  close: number,
): Generator<readonly [from: number, to: number]> {
  let from = open + 1;
  for (const cut of cuts) {
    yield [from, cut];
    from = cut + 1;
  }
  yield [from, close];
}

/**
 * Sets a member as JSON.parse does, even one named `__proto__`, which a client may send; only that name is set the slow
 * way.
 */
export function setOwn(members: Record<string, unknown>, name: string, value: unknown): void {
  if (name !== "__proto__") members[name] = value;
  else Object.defineProperty(members, name, { value, writable: true, enumerable: true, configurable: true });
}
