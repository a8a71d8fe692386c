/**
 * Deltas that differ from the one before by their text only, from one protocol to another: once one has been parsed and
 * written again, those after it are known by their bytes, and the client's frames are the bytes of the first one around the
 * texts. A run of them is counted and kept as one text. Where ten events come at once this is a fifth of the work.
 */
import { isUtf8 } from "node:buffer";
import { DeltaTemplate, type Varying } from "../delta-template.ts";
import type { ReplyEvent } from "../hub.ts";
import type { DeltaType } from "../stream-encoder.ts";

/** A hub event that holds a text and nothing else. */
type PlainDelta = Extract<ReplyEvent, { type: DeltaType }>;

/** The delta that is all that an event has said; undefined: it has said something else. */
export function plainDelta([event, further]: readonly ReplyEvent[]): PlainDelta | undefined {
  if (event === undefined || further !== undefined) return undefined;
  if (event.type === "reasoning-delta") return event;
  return event.type === "text-delta" && event.logprobs === undefined ? event : undefined;
}

/** Longest run; the frames after it are the next one. */
const RUN_DELTAS_MAX = 512;
/** Where the texts of a run begin and end; one list for all streams, since a run is matched and written in one go. */
const PLACES = new Int32Array(2 * RUN_DELTAS_MAX);

export class RepeatedDelta {
  readonly #came: DeltaTemplate;
  /** Undefined: the client gets nothing of it. */
  readonly #sent: DeltaTemplate | undefined;
  /** How many deltas the last run has. */
  deltas = 0;
  #textBytes = 0;
  #isAscii = true;

  private constructor(came: DeltaTemplate, sent: DeltaTemplate | undefined) {
    this.#came = came;
    this.#sent = sent;
  }

  /**
   * @param came the frame that the delta came in, and what differs in the frames after it.
   * @param sent the frames that the client got of it, and what differs in those after them.
   * @returns undefined where the client got more than one, or where they do not have the same text in one place each.
   */
  static of(
    came: Buffer,
    cameVarying: Varying,
    sent: readonly Buffer[],
    sentVarying: Varying,
  ): RepeatedDelta | undefined {
    const template = DeltaTemplate.of(came, came, cameVarying);
    const text = template && textIn(template, came);
    const [frame, further] = sent;
    if (!template || !text || further) return undefined;
    if (!frame) return new RepeatedDelta(template, undefined);
    const written = DeltaTemplate.ofOwn(frame, sentVarying);
    if (!written || !textIn(written, frame)?.equals(text)) return undefined;
    return new RepeatedDelta(template, written);
  }

  /** Whether a frame that was parsed, right after one of these, is another one, though its text may have escapes. */
  fits(frame: Buffer): boolean {
    return this.#came.fits(frame);
  }

  /** Looks for a run. @returns where it ends; `from` when there is none. */
  match(bytes: Buffer, from: number): number {
    const { found } = this.#came;
    let end = from;
    this.deltas = 0;
    this.#textBytes = 0;
    this.#isAscii = true;
    while (this.deltas < RUN_DELTAS_MAX) {
      const next = this.#came.match(bytes, end);
      if (next < 0) break;
      const { textStart, textEnd } = found;
      // What is not UTF-8 is put right where it is parsed.
      if (!found.isAscii && !isUtf8(bytes.subarray(textStart, textEnd))) break;
      PLACES[2 * this.deltas] = textStart;
      PLACES[2 * this.deltas + 1] = textEnd;
      this.deltas++;
      this.#textBytes += textEnd - textStart;
      this.#isAscii &&= found.isAscii;
      end = next;
    }
    return end;
  }

  /** The texts of the run in one. @param bytes those in which it was matched. */
  text(bytes: Buffer): string {
    const all = Buffer.allocUnsafe(this.#textBytes);
    let at = 0;
    for (let i = 0; i < 2 * this.deltas; i += 2) {
      const end = PLACES[i + 1] as number;
      for (let from = PLACES[i] as number; from < end; from++) all[at++] = bytes[from] as number;
    }
    return all.toString(this.#isAscii ? "latin1" : "utf8");
  }

  /**
   * The client's frames of the run.
   * @param bytes those in which it was matched.
   * @param first the number of the first frame.
   */
  write(bytes: Buffer, first: number): Buffer | undefined {
    if (!this.#sent) return undefined;
    const most = this.#sent.bytesAround(first + this.deltas - 1);
    const written = Buffer.allocUnsafe(this.deltas * most + this.#textBytes);
    let at = 0;
    for (let i = 0; i < this.deltas; i++) {
      at = this.#sent.put(written, at, bytes, PLACES[2 * i] as number, PLACES[2 * i + 1] as number, first + i);
    }
    return at === written.length ? written : written.subarray(0, at);
  }
}

/** The text of the frame that a template was made of; undefined where it has escapes or is none. */
function textIn(template: DeltaTemplate, frame: Buffer): Buffer | undefined {
  if (template.match(frame, 0) !== frame.length) return undefined;
  return frame.subarray(template.found.textStart, template.found.textEnd);
}
