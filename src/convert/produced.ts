/**
 * Counts what a model has produced as it passes. A reply whose upstream gives no usage is charged by this
 * (docs/decisions/what-a-disconnect-costs.md).
 */

import { type JsonObject, objectOf } from "../values/json-object.ts";
import { TextTokens } from "../values/tokens/text.ts";
import type { ProducedCounts, ServedCounts } from "../values/tokens/usage.ts";

export const NOTHING_PRODUCED: ProducedCounts = Object.freeze({ bytes: 0, tokens: 0, deltas: 0 });

/** The texts of consecutive deltas that arrived in one piece of bytes. */
export interface TextRun {
  readonly deltas: number;
  /** Bytes of all texts together. */
  readonly textBytes: number;
  /** Whether each byte is one character. */
  readonly isAscii: boolean;
  /** Positions of the texts: start and end of the first at `textAt`, those of each further one `stride` later. */
  readonly places: Int32Array;
  readonly textAt: number;
  readonly stride: number;
}

/** Characters per token of what cannot be read (sealed reasoning: base64 of its text). */
const OPAQUE_CHARS_PER_TOKEN = 4;
/** Base64 characters per token of an image or of audio; published figures range from 60 to 3,000. */
const MEDIA_CHARS_PER_TOKEN = 64;
/** Longer signatures contain the sealed reasoning itself; shorter ones only authenticate it. */
const SIGNATURE_CHARS_SHORT = 1_024;
const DATA_URL = "data:";
/** The most values of one unknown member that are examined. */
const VALUES_MAX = 10_000;

/** One per reply. The result does not depend on how its text was split into deltas. */
export class Produced {
  #bytes = 0;
  #deltas = 0;
  readonly #text = new TextTokens();

  /** Bytes counted so far. */
  get size(): number {
    return this.#bytes;
  }

  /** The counts so far. */
  counts(): ProducedCounts {
    const tokens = Math.ceil(this.#text.tokens);
    return { bytes: this.#bytes, tokens, deltas: this.#deltas };
  }

  /** Counts text. @returns whether there was any. */
  text(value: unknown): boolean {
    if (typeof value !== "string" || value === "") return false;
    const bytes = Buffer.byteLength(value);
    this.#bytes += bytes;
    this.#text.add(value, bytes);
    return true;
  }

  /** Counts deltas whose texts are still bytes. @param source those bytes. */
  run(source: Buffer, { deltas, textBytes, isAscii, places, textAt, stride }: TextRun): void {
    const end = deltas * stride;
    this.#deltas += deltas;
    if (isAscii) {
      this.#bytes += textBytes;
      for (let at = textAt; at < end; at += stride) {
        this.#text.addAscii(source, places[at] as number, places[at + 1] as number);
      }
      return;
    }
    // One by one: the beginning of the next delta does not complete half a character.
    for (let at = textAt; at < end; at += stride) this.text(source.toString("utf8", places[at], places[at + 1]));
  }

  /** Counts what only the upstream can read, such as sealed reasoning. @returns whether there was any. */
  opaque(value: unknown): boolean {
    return this.#lump(value, OPAQUE_CHARS_PER_TOKEN);
  }

  /** Counts the signature of reasoning if it is long enough to contain the reasoning. */
  signature(value: unknown): void {
    if (typeof value === "string" && value.length > SIGNATURE_CHARS_SHORT) this.opaque(value);
  }

  /** Counts an image or audio in base64. @returns whether there was any. */
  media(value: unknown): boolean {
    return this.#lump(value, MEDIA_CHARS_PER_TOKEN);
  }

  #lump(value: unknown, charsPerToken: number): boolean {
    if (typeof value !== "string" || value === "") return false;
    this.#bytes += Buffer.byteLength(value);
    this.#text.addTokens(value.length / charsPerToken);
    return true;
  }

  /**
   * Counts a member of unknown structure, down to its last string. Members that are bookkeeping in every protocol are
   * skipped. A number on its own is a position or a state; in a list it is output.
   * @returns whether anything in it is output.
   */
  unknown(value: unknown): boolean {
    // The values being examined, innermost last. Nothing is copied that is not examined.
    const open: { readonly values: readonly unknown[]; readonly isList: boolean; at: number }[] = [];
    open.push({ values: [value], isList: false, at: 0 });
    let found = false;
    for (let looked = 0; looked < VALUES_MAX; looked++) {
      let inner = open.at(-1);
      while (inner && inner.at === inner.values.length) {
        open.pop();
        inner = open.at(-1);
      }
      if (!inner) break;
      const next = inner.values[inner.at++];
      if (typeof next === "string") found = (next.startsWith(DATA_URL) ? this.media(next) : this.text(next)) || found;
      else if (typeof next === "number") found = (inner.isList && this.text(`${next} `)) || found;
      else if (Array.isArray(next)) open.push({ values: next, isList: true, at: 0 });
      else {
        const object = objectOf(next);
        const names = object ? Object.keys(object).filter((name) => !isLabel(name)) : [];
        if (object) open.push({ values: names.map((name) => object[name]), isList: false, at: 0 });
      }
    }
    return found;
  }

  /** Counts what a tool of the server has found: text, and what only the upstream can read. */
  found(value: unknown): void {
    for (const one of Array.isArray(value) ? value : [value]) {
      const result = objectOf(one);
      const source = objectOf(objectOf(result?.content)?.source);
      if (!result) this.unknown(one);
      else if (source?.type === "base64") this.media(source.data);
      else {
        this.opaque(result.encrypted_content);
        countUnknown(this, result, SEALED);
      }
    }
  }

  /** Adds this number of events with output. */
  noteDeltas(deltas: number): void {
    this.#deltas += deltas;
  }
}

const SEALED: ReadonlySet<string> = new Set(["encrypted_content"]);

/** What tools that the server runs have done within one reply. */
export class Served {
  #found: Produced | undefined;
  #counts: ServedCounts | undefined;

  /**
   * Sets the calls. @param calls all that are known so far. @param ended those with a result, if the reply shows these
   * separately.
   */
  know(calls: Readonly<Record<string, number>>, ended?: Readonly<Record<string, number>>): void {
    this.#counts = { calls, ended, foundTokens: this.#counts?.foundTokens ?? 0 };
  }

  /** Counts the results of a call. */
  found(...values: readonly unknown[]): void {
    this.#found ??= new Produced();
    for (const value of values) this.#found.found(value);
    const { calls = {}, ended } = this.#counts ?? {};
    this.#counts = { calls, ended, foundTokens: this.#found.counts().tokens };
  }

  /** Adds to `produced` what these tools have done. */
  beside(produced: ProducedCounts): ProducedCounts {
    const served = this.#counts;
    return served ? { ...produced, served } : produced;
  }
}

/** Counts the output of one stream, event by event. */
export abstract class StreamOutput {
  protected readonly produced = new Produced();
  protected readonly served = new Served();

  /** Bytes so far. */
  get size(): number {
    return this.produced.size;
  }

  counts(): ProducedCounts {
    return this.served.beside(this.produced.counts());
  }

  /**
   * Looks at one event.
   * @param type its `type`, for protocols that have one.
   * @returns whether it holds any output.
   */
  see(type: unknown, payload: JsonObject): boolean {
    const found = this.look(type, payload);
    if (found) this.produced.noteDeltas(1);
    return found;
  }

  protected abstract look(type: unknown, payload: JsonObject): boolean;

  /** Accounts for further deltas whose only output is these texts. */
  again(source: Buffer, run: TextRun): void {
    this.produced.run(source, run);
  }

  /** Accounts for `deltas` more deltas whose only output is this text, which they contain together. */
  addDeltas(text: string, deltas: number): void {
    this.produced.text(text);
    this.produced.noteDeltas(deltas);
  }
}

/** Members that name, locate or date something, in every protocol and at every depth. */
const LABELS: ReadonlySet<string> = new Set([
  ...["id", "type", "object", "index", "role", "status", "created", "created_at", "expires_at", "model", "phase"],
  ...["name", "call_id", "item_id", "tool_use_id", "tool_call_id", "response_id", "output_index", "content_index"],
  ...["format", "mime_type", "media_type", "detail", "signature", "thought_signature", "caller", "cache_control"],
  ...["obfuscation", "padding", "usage", "logprobs", "service_tier", "system_fingerprint", "finish_reason"],
]);

function isLabel(name: string): boolean {
  return LABELS.has(name);
}

/**
 * Counts every member of an object that is neither known nor a label.
 * @param known members that are already counted or are bookkeeping here.
 * @returns whether any of them is output.
 */
export function countUnknown(produced: Produced, object: JsonObject, known: ReadonlySet<string>): boolean {
  let found = false;
  for (const name of Object.keys(object)) {
    if (known.has(name) || isLabel(name)) continue;
    found = produced.unknown(object[name]) || found;
  }
  return found;
}
