/**
 * What completed replies teach about a model at an upstream: how much of its output it shows, how fast it thinks where it
 * shows nothing, and how many tokens its text makes. It prices the replies whose count never came: those that their
 * client left. Kept by each process for itself, and gone with it (docs/decisions/what-leaving-costs.md).
 */
import type { ProducedCounts, Usage } from "../values/tokens/usage.ts";

/** Whether a model's output may hold more than it shows. */
type Thinks = "yes" | "unknown" | "no";

/** How a model at an upstream writes. */
export interface Pace {
  readonly thinks: Thinks;
  /** Hidden tokens for each second of silence; a high quantile of what was seen. */
  readonly hiddenPerS: number;
  /** Tokens that the upstream counts for each one by the characters; a high quantile, at least 1. */
  readonly visibleFactor: number;
}

/** Added to the silence of a client that leaves: the least time of thinking that is in doubt, since short ones do not show. */
const DOUBT_MS_MIN = 500;

/** Tokens that may have been hidden from a client that leaves, for all that is known. */
export function doubtedTokens({ silentMs }: { readonly silentMs: number }, { hiddenPerS }: Pace): number {
  return ((silentMs + DOUBT_MS_MIN) / MS_PER_S) * hiddenPerS;
}

/** Of streams that are left, so many are read on for whatever is believed of their model, and all that were silent for so long. */
const CHECKED_SHARE = 1 / 8;
const CHECKED_SILENT_MS = 7_000;

/** Where a model runs: the upstream's name and the model's name there. */
interface ModelAtUpstream {
  readonly upstream: string;
  readonly upstreamModel: string;
}

/** A reply that came to its end with a count. */
interface Completed {
  readonly usage: Usage;
  readonly produced: ProducedCounts;
  readonly silentMs: number;
}

/** Hidden tokens for each second of silence before anything has been seen: more than all but special hardware writes. */
export const HIDDEN_PER_S_DEFAULT = 150;
/** Tokens for each one by the characters before anything has been seen. */
const VISIBLE_FACTOR_DEFAULT = 1;
/** Replies without a hidden token after which a model is believed to show all that it writes. */
export const REPLIES_TO_BELIEVE = 20;

/** Replies that are remembered of each place. */
const SAMPLES_MAX = 200;
/** With fewer samples than this the default is used. */
const SAMPLES_MIN = 5;
/** The part of the samples that the figure covers. */
const QUANTILE = 0.9;
/** Replies shorter than this show more of their beginning than of the model's pace. */
const VISIBLE_TOKENS_MIN = 100;
const HIDDEN_TOKENS_MIN = 256;
const SILENT_MS_MIN = 1_000;
/** A count beyond this is more than any text explains: the rest was hidden. */
const EXPLAINED_FACTOR = 2;
const EXPLAINED_TOKENS = 64;
const VISIBLE_FACTOR_MAX = 2;
/** There are fewer unless a configuration is reloaded again and again. */
const PLACES_MAX = 1_000;

const MS_PER_S = 1_000;

export class Observed {
  readonly #places = new Map<string, Observation>();
  readonly #random: () => number;

  /** @param random gives a number in [0, 1). */
  constructor(random: () => number = Math.random) {
    this.#random = random;
  }

  /** Learns from a reply. */
  note(place: ModelAtUpstream, reply: Completed): void {
    const key = keyOf(place);
    let observation = this.#places.get(key);
    if (!observation) {
      if (this.#places.size >= PLACES_MAX) this.#places.clear();
      observation = new Observation();
      this.#places.set(key, observation);
    }
    observation.note(reply);
  }

  /** @param declared whether the configuration, or the request itself, says that the model thinks. */
  paceOf(place: ModelAtUpstream, declared: boolean): Pace {
    const seen = this.#places.get(keyOf(place)) ?? NEVER;
    return { thinks: declared ? "yes" : seen.thinks, hiddenPerS: seen.hiddenPerS, visibleFactor: seen.visibleFactor };
  }

  /**
   * Draws whether a stream that its client leaves is to be read on for its count although its model is believed to show all. A model may
   * come to think, and where everybody left before the count nobody would ever know: the longer a stream has shown nothing, the
   * likelier. By chance, so that nobody can have the checked one be another.
   */
  drawCheck({ silentMs }: { readonly silentMs: number }): boolean {
    return this.#random() < CHECKED_SHARE + (1 - CHECKED_SHARE) * (silentMs / CHECKED_SILENT_MS);
  }
}

class Observation {
  readonly #hiddenPerS = new Samples();
  readonly #visibleFactors = new Samples();
  #replies = 0;
  #hides = false;

  get thinks(): Thinks {
    if (this.#hides) return "yes";
    return this.#replies < REPLIES_TO_BELIEVE ? "unknown" : "no";
  }

  get hiddenPerS(): number {
    return this.#hiddenPerS.high ?? HIDDEN_PER_S_DEFAULT;
  }

  get visibleFactor(): number {
    const factor = this.#visibleFactors.high ?? VISIBLE_FACTOR_DEFAULT;
    return Math.min(Math.max(factor, 1), VISIBLE_FACTOR_MAX);
  }

  note({ usage, produced, silentMs }: Completed): void {
    this.#replies = Math.min(this.#replies + 1, REPLIES_TO_BELIEVE);
    const { tokens } = produced;
    const hidden = usage.output - tokens;
    if (usage.output > EXPLAINED_FACTOR * tokens + EXPLAINED_TOKENS) {
      this.#hides = true;
      if (silentMs >= SILENT_MS_MIN && hidden >= HIDDEN_TOKENS_MIN) {
        this.#hiddenPerS.add(hidden / (silentMs / MS_PER_S));
      }
    } else if (tokens >= VISIBLE_TOKENS_MIN && usage.reasoning === 0 && silentMs === 0) {
      this.#visibleFactors.add(usage.output / tokens);
    }
  }
}

/** The last so many figures, and a high one among them. */
class Samples {
  /** In the order in which they came, the oldest overwritten first. */
  readonly #values: number[] = [];
  /** The same in order of size. */
  readonly #sorted: number[] = [];
  #next = 0;

  /** Undefined while there are too few. */
  get high(): number | undefined {
    const { length } = this.#sorted;
    return length < SAMPLES_MIN ? undefined : this.#sorted[Math.ceil(QUANTILE * length) - 1];
  }

  add(value: number): void {
    const oldest = this.#values[this.#next];
    if (oldest !== undefined) this.#sorted.splice(placeIn(this.#sorted, oldest), 1);
    this.#sorted.splice(placeIn(this.#sorted, value), 0, value);
    this.#values[this.#next] = value;
    this.#next = (this.#next + 1) % SAMPLES_MAX;
  }
}

/** Where the first number stands that is not below this one. */
function placeIn(sorted: readonly number[], value: number): number {
  let from = 0;
  let to = sorted.length;
  while (from < to) {
    const middle = (from + to) >>> 1;
    if ((sorted[middle] as number) < value) from = middle + 1;
    else to = middle;
  }
  return from;
}

const NEVER = new Observation();

function keyOf({ upstream, upstreamModel }: ModelAtUpstream): string {
  // The names of upstreams and models are of the configuration, and have no line breaks in them.
  return `${upstream}\n${upstreamModel}`;
}
