/**
 * Fast path for deltas that differ from the one before by their text only, in a stream that is translated. Once one has
 * been parsed and encoded, the deltas after it are recognized by their bytes. The client's frames are then the bytes of
 * the first one around the new texts. A run of deltas is counted and kept as one text. If ten events arrive at once,
 * this takes a fifth of the work.
 */
import { type DeltaRun, DeltaTemplate, type Varying } from "../delta-template.ts";
import type { ReplyEvent } from "../hub-reply.ts";
import type { DeltaType } from "../stream-encoder.ts";

/** A hub event that contains a text and nothing else. */
type PlainDelta = Extract<ReplyEvent, { type: DeltaType }>;

/** The delta, if it is the only hub event of a frame; undefined otherwise. */
export function plainDelta([event, further]: readonly ReplyEvent[]): PlainDelta | undefined {
  if (event === undefined || further !== undefined) return undefined;
  if (event.type === "reasoning-delta") return event;
  return event.type === "text-delta" && event.logprobs === undefined ? event : undefined;
}

export class RepeatedDelta {
  readonly #came: DeltaTemplate;
  /** Undefined: the client gets no frame for it. */
  readonly #sent: DeltaTemplate | undefined;

  private constructor(came: DeltaTemplate, sent: DeltaTemplate | undefined) {
    this.#came = came;
    this.#sent = sent;
  }

  /**
   * @param came the frame of the delta, and what varies in the frames after it.
   * @param sent the frames that the client got for it, and what varies in those after it.
   * @returns undefined if the client got more than one frame, or if the two frames do not contain the same text once
   * each.
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

  /** Whether a parsed frame, directly after one of these, is of the same kind; its text may have escapes. */
  fits(frame: Buffer): boolean {
    return this.#came.fits(frame, true);
  }

  /** @returns the run that begins at `from`; undefined if there is none. It is valid until the next call. */
  run(bytes: Buffer, from: number): DeltaRun | undefined {
    // Invalid UTF-8 is corrected by the parser.
    return this.#came.run(bytes, from, true);
  }

  /**
   * The client's frames for the run.
   * @param bytes the bytes in which the run was found.
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

/** The texts of a run, joined. @param bytes the bytes in which the run was found. */
export function textOf(bytes: Buffer, { deltas, textBytes, isAscii, places, textAt, stride }: DeltaRun): string {
  const all = Buffer.allocUnsafe(textBytes);
  let at = 0;
  for (let place = textAt; place < deltas * stride; place += stride) {
    const end = places[place + 1] as number;
    for (let from = places[place] as number; from < end; from++) all[at++] = bytes[from] as number;
  }
  return all.toString(isAscii ? "latin1" : "utf8");
}

/** The text of the frame from which a template was made; undefined if it has escapes or is empty. */
function textIn(template: DeltaTemplate, frame: Buffer): Buffer | undefined {
  const run = template.run(frame, 0, false);
  return run?.end === frame.length ? frame.subarray(run.places[run.textAt], run.places[run.textAt + 1]) : undefined;
}
