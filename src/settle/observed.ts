/**
 * What completed replies show about a model at an upstream: how much of its output is hidden, how fast it produces
 * hidden tokens, and how many tokens its visible text has. This prices replies whose count never arrived because the
 * client disconnected. Each process learns for itself and forgets at its end (docs/decisions/what-a-disconnect-costs.md).
 */
import type { ProducedCounts, Usage } from "../values/tokens/usage.ts";

/** Whether a model's output may have hidden tokens. */
type Thinks = "yes" | "unknown" | "no";

/** How a model at an upstream produces output. */
export interface Pace {
  readonly thinks: Thinks;
  /** Hidden tokens per second of silence: a high quantile of the samples. */
  readonly hiddenPerS: number;
  /** Tokens in the upstream's count per token estimated from characters: a high quantile, at least 1. */
  readonly visibleFactor: number;
}

/** Added to the silence when a client disconnects: thinking shorter than this does not show as silence. */
const UNSEEN_MS_MIN = 500;

/** Tokens that may have been produced unseen before a client disconnected. */
export function unseenTokens({ silentMs }: { readonly silentMs: number }, { hiddenPerS }: Pace): number {
  return ((silentMs + UNSEEN_MS_MIN) / MS_PER_S) * hiddenPerS;
}

/**
 * After a disconnect, this share of streams is read to the end even if the model is assumed to hide nothing; and all
 * streams that were silent for at least this long.
 */
const CHECKED_SHARE = 1 / 8;
const CHECKED_SILENT_MS = 7_000;

/** Where a model runs: the upstream's name and the model's name there. */
interface ModelAtUpstream {
  readonly upstream: string;
  readonly upstreamModel: string;
}

/** A reply that ended normally, with a count. */
interface Completed {
  readonly usage: Usage;
  readonly produced: ProducedCounts;
  readonly silentMs: number;
}

/** Hidden tokens per second of silence before there are samples: more than any but special hardware produces. */
export const HIDDEN_PER_S_DEFAULT = 150;
/** Real tokens per token estimated from characters, before there are samples. */
const VISIBLE_FACTOR_DEFAULT = 1;
/** After this many replies without a hidden token a model is assumed to show all of its output. */
export const REPLIES_TO_TRUST = 20;

/** Samples kept of each model at an upstream. */
const SAMPLES_MAX = 200;
/** With fewer samples the default is used. */
const SAMPLES_MIN = 5;
/** The quantile of the samples that is used. */
const QUANTILE = 0.9;
/** Shorter replies are dominated by their beginning and say little about the model's pace. */
const VISIBLE_TOKENS_MIN = 100;
const HIDDEN_TOKENS_MIN = 256;
const SILENT_MS_MIN = 1_000;
/** A count above this cannot come from the visible text alone: the rest was hidden. */
const EXPLAINED_FACTOR = 2;
const EXPLAINED_TOKENS = 64;
const VISIBLE_FACTOR_MAX = 2;
/** Only many reloads of the configuration could reach this number. */
const MODELS_MAX = 1_000;

const MS_PER_S = 1_000;

export class Observed {
  readonly #models = new Map<string, Observation>();
  readonly #random: () => number;

  /** @param random returns a number in [0, 1). */
  constructor(random: () => number = Math.random) {
    this.#random = random;
  }

  /** Learns from a reply. */
  note(model: ModelAtUpstream, reply: Completed): void {
    const key = keyOf(model);
    let observation = this.#models.get(key);
    if (!observation) {
      if (this.#models.size >= MODELS_MAX) this.#models.clear();
      observation = new Observation();
      this.#models.set(key, observation);
    }
    observation.note(reply);
  }

  /** @param declared whether the configuration, or the request itself, says that the model thinks. */
  paceOf(model: ModelAtUpstream, declared: boolean): Pace {
    const seen = this.#models.get(keyOf(model)) ?? NEVER;
    return { thinks: declared ? "yes" : seen.thinks, hiddenPerS: seen.hiddenPerS, visibleFactor: seen.visibleFactor };
  }

  /**
   * Decides by chance whether a stream is read to its count after the client has disconnected, although its model is
   * assumed to hide nothing. A model may start to think, and if every client disconnected before the count, that would
   * never be noticed. The longer the silence, the higher the chance. Random, so that no client can predict which stream
   * is checked.
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
    return this.#replies < REPLIES_TO_TRUST ? "unknown" : "no";
  }

  get hiddenPerS(): number {
    return this.#hiddenPerS.high ?? HIDDEN_PER_S_DEFAULT;
  }

  get visibleFactor(): number {
    const factor = this.#visibleFactors.high ?? VISIBLE_FACTOR_DEFAULT;
    return Math.min(Math.max(factor, 1), VISIBLE_FACTOR_MAX);
  }

  note({ usage, produced, silentMs }: Completed): void {
    this.#replies = Math.min(this.#replies + 1, REPLIES_TO_TRUST);
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

/** The latest samples and their high quantile. */
class Samples {
  /** In order of arrival; the oldest is overwritten first. */
  readonly #values: number[] = [];
  /** The same values, sorted. */
  readonly #sorted: number[] = [];
  #next = 0;

  /** The quantile; undefined while there are too few samples. */
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

/** Index of the first number that is not below this one. */
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
  // The names come from the configuration and contain no line breaks.
  return `${upstream}\n${upstreamModel}`;
}
