/**
 * The mark that distinguishes one history of a store from another: a random id, and the number of seconds during which
 * some gateway was counting on it. A store that is empty, is another one, or was restored from a backup has no mark,
 * another id or a lower count (docs/failure-model.md row B12). The count grows at most once a second, however many
 * gateways there are, so that a gateway that starts after a loss cannot make up for the loss.
 */
import type { AccountTag } from "../values/key.ts";

export interface EpochMark {
  readonly id: string;
  /** Seconds that were counted in this history. */
  readonly count: number;
  /** Ids of earlier histories that an operator had this one continue, newest first. */
  readonly past: readonly string[];
  /** A gateway has seen that this history lost its end, and waits for an operator. */
  readonly stopped: boolean;
}

/** The mark of each part of a store that can lose its data by itself. */
export interface Epochs {
  /** 1; in Cluster form one for each range of slots. */
  readonly epochParts: number;
  /** The part that holds an account. */
  epochPartOf(tag: AccountTag): number;
  /**
   * Reads a part's mark. If the mark is the `known` one, with a count of at least `countMin`, its count goes on; any
   * other mark is left alone. If there is no mark and none is known, a mark with the id `fresh` is made.
   * @returns undefined when there is none.
   */
  countEpoch(
    part: number,
    known: { readonly id: string; readonly countMin: number } | undefined,
    fresh: string,
  ): Promise<EpochMark | undefined>;
  /** Records, for every gateway, that this history lost its end. Does nothing when the part has another id. */
  stopEpoch(part: number, id: string): Promise<void>;
  /**
   * An operator accepts the part as it is: it gets a new id, and its count goes on.
   * @param from the present id; undefined when there is none.
   * @returns undefined, with nothing changed, when the part has another id.
   */
  renewEpoch(
    part: number,
    from: string | undefined,
    to: { readonly id: string; readonly past: readonly string[] },
  ): Promise<EpochMark | undefined>;
}

/** Past ids that a mark keeps. */
export const EPOCH_PAST_MAX = 16;
