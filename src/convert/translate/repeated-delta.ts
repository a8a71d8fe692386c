/**
 * Deltas that differ from the one before by their text only, from one protocol to another: once one has been parsed and
 * written again, those after it are known by their bytes, and the client's frames are the bytes of the first one around the
 * texts. A run of them is counted and kept as one text. Where ten events come at once this is a fifth of the work.
 */
import { type DeltaRun, DeltaTemplate, type Varying } from "../delta-template.ts";
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

export class RepeatedDelta {
  readonly #came: DeltaTemplate;
  /** Undefined: the client gets nothing of it. */
  readonly #sent: DeltaTemplate | undefined;

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
    return this.#came.fits(frame, true);
  }

  /** @returns the run that begins at `from`, for as long as no other is looked for; undefined where none does. */
  run(bytes: Buffer, from: number): DeltaRun | undefined {
    // What is not UTF-8 is put right where it is parsed.
    return this.#came.run(bytes, from, true);
  }

  /**
   * The client's frames of the run.
   * @param bytes those in which it was found.
   * @param first the number of the first frame.
   */
  write(bytes: Buffer, { deltas, textBytes, places, textAt, stride }: DeltaRun, first: number): Buffer | undefined {
    if (!this.#sent) return undefined;
    const most = this.#sent.bytesAround(first + deltas - 1);
    const written = Buffer.allocUnsafe(deltas * most + textBytes);
    let at = 0;
    for (let i = 0; i < deltas; i++) {
      const place = i * stride + textAt;
      at = this.#sent.put(written, at, bytes, places[place] as number, places[place + 1] as number, first + i);
    }
    return at === written.length ? written : written.subarray(0, at);
  }
}

/** The texts of a run in one. @param bytes those in which it was found. */
export function textOf(bytes: Buffer, { deltas, textBytes, isAscii, places, textAt, stride }: DeltaRun): string {
  const all = Buffer.allocUnsafe(textBytes);
  let at = 0;
  for (let place = textAt; place < deltas * stride; place += stride) {
    const end = places[place + 1] as number;
    for (let from = places[place] as number; from < end; from++) all[at++] = bytes[from] as number;
  }
  return all.toString(isAscii ? "latin1" : "utf8");
}

/** The text of the frame that a template was made of; undefined where it has escapes or is none. */
function textIn(template: DeltaTemplate, frame: Buffer): Buffer | undefined {
  const run = template.run(frame, 0, false);
  return run?.end === frame.length ? frame.subarray(run.places[run.textAt], run.places[run.textAt + 1]) : undefined;
}
