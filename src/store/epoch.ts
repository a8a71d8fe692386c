/**
 * The mark that distinguishes one history of a store from another: a random id, and the number of seconds in which some
 * gateway was counting on it. A store that is empty, or another one, or was put back from a backup, has no mark,
 * another id, or a lower count (docs/failure-model.md row B12). The count grows at most once a second, however many
 * gateways there are, so that one that starts after a loss cannot make the loss good.
 */
import type { AccountTag } from "../values/key.ts";

export interface EpochMark {
  readonly id: string;
  /** Seconds that were counted in this history. */
  readonly count: number;
  /** Ids that this history goes on from by an operator's word, newest first. */
  readonly past: readonly string[];
  /** A gateway has seen that this history lost its end, and waits for an operator. */
  readonly stopped: boolean;
}

/** The mark of each part of a store that can lose its data by itself. */
export interface Epochs {
  /** 1; in Cluster form one for each stretch of slots. */
  readonly epochParts: number;
  /** The part that holds an account. */
  epochPartOf(tag: AccountTag): number;
  /**
   * Reads a part's mark. One that is `known`, with at least `countMin`, counts on; any other is left alone. Where there is
   * none and none is known, one with the id `fresh` is made.
   * @returns undefined when there is none.
   */
  countEpoch(
    part: number,
    known: { readonly id: string; readonly countMin: number } | undefined,
    fresh: string,
  ): Promise<EpochMark | undefined>;
  /** Marks, for every gateway, that this history lost its end. Nothing happens when the part has another id. */
  stopEpoch(part: number, id: string): Promise<void>;
  /**
   * An operator takes the part as it is: it gets a new id, and its count goes on.
   * @param from the id that is there; undefined when there is none.
   * @returns undefined, and nothing is changed, when another one is there.
   */
  renewEpoch(
    part: number,
    from: string | undefined,
    to: { readonly id: string; readonly past: readonly string[] },
  ): Promise<EpochMark | undefined>;
}

/** Past ids that a mark keeps. */
export const EPOCH_PAST_MAX = 16;
