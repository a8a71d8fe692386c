/**
 * Converts chat completions usage to token kinds and back (docs/translation-rules.md rule 44). `prompt_tokens` should
 * include everything cached, `completion_tokens` all reasoning; docs/usage-forms.md lists what servers really send.
 */

import { isGiven, type JsonObject, objectOf, objectsIn } from "../../values/json-object.ts";
import { mergedCalls } from "../../values/tokens/tool-calls.ts";
import { addCounts, plausibleCount, totalInput, type Usage } from "../../values/tokens/usage.ts";
import {
  cachedCount,
  largestCount,
  namedCount,
  plausibleTotal,
  toolCounts,
  usageOfIncluded,
  writtenCounts,
} from "../included-usage.ts";
import { finishOf } from "../rules/finish-words.ts";

/**
 * Reads a `usage` object. An implausible count is treated as absent (docs/failure-model.md rows C10 and 64).
 * @returns undefined if it counts nothing. A side that is not counted is 0; `billedUsage` fills it in.
 */
export function readUsage(value: unknown): Usage | undefined {
  const usage = objectOf(value);
  if (!usage) return undefined;
  const details = inputDetails(usage);
  const { written, written1h } = writtenCounts(usage, details);
  const citations = plausibleCount(usage.citation_tokens);
  const counted = usageOfIncluded({
    // Servers of several protocols also send another protocol's names, alone or next to zeros.
    input: namedCount(usage.prompt_tokens, usage.input_tokens) ?? hitAndMiss(usage),
    output: namedCount(usage.completion_tokens, usage.output_tokens),
    total: plausibleTotal(usage.total_tokens, usage.prompt_tokens, usage.completion_tokens),
    cached: cachedCount(usage, details),
    written,
    written1h,
    reasoning: largestCount(
      objectOf(usage.completion_tokens_details)?.reasoning_tokens,
      objectOf(usage.output_tokens_details)?.reasoning_tokens,
      usage.reasoning_tokens,
    ),
    reasoningBeside: citations !== undefined,
    moreInput: citations ?? 0,
  });
  const calls = counted && toolCalls(usage);
  return calls ? { ...counted, toolCalls: calls } : counted;
}

/** One server spells the member without the second s. */
function inputDetails(usage: JsonObject): JsonObject | undefined {
  const { prompt_tokens_details, prompt_token_details, input_tokens_details } = usage;
  return objectOf(prompt_tokens_details) ?? objectOf(prompt_token_details) ?? objectOf(input_tokens_details);
}

/** All input, for a server that counts cached and uncached tokens separately and gives no sum. */
function hitAndMiss(usage: JsonObject): number | undefined {
  const hit = plausibleCount(usage.prompt_cache_hit_tokens);
  const miss = plausibleCount(usage.prompt_cache_miss_tokens);
  return hit === undefined || miss === undefined ? undefined : hit + miss;
}

/** @returns undefined if the server counts none, as in nearly every reply. */
function toolCalls(usage: JsonObject): Readonly<Record<string, number>> | undefined {
  const { server_tool_use, server_side_tool_usage_details, num_search_queries, num_sources_used } = usage;
  if (!isGiven(server_tool_use ?? server_side_tool_usage_details ?? num_search_queries ?? num_sources_used)) {
    return undefined;
  }
  const searches = plausibleCount(num_search_queries);
  const sources = plausibleCount(num_sources_used);
  return mergedCalls(
    {
      ...toolCounts(server_tool_use, "_requests"),
      ...toolCounts(server_side_tool_usage_details, "_calls"),
    },
    { ...(searches ? { web_search: searches } : {}), ...(sources ? { live_search: sources } : {}) },
  );
}

/**
 * The usage of a whole reply, or of a stream chunk outside of its choices: under its own name, inside a vendor's
 * member, or as the timings of a local server.
 */
function readReplyUsage(reply: JsonObject): Usage | undefined {
  return readUsage(reply.usage) ?? readUsage(objectOf(reply.x_groq)?.usage) ?? readTimings(reply.timings);
}

/** The usage of a whole reply, from any of the members in which servers put it. */
export function readWholeUsage(reply: JsonObject): Usage | undefined {
  const choices = objectsIn(reply.choices);
  const usage = readReplyUsage(reply) ?? joinedUsage(choices.flatMap((choice) => readUsage(choice.usage) ?? []));
  const cited = choices.some((choice) => citesTheWeb(objectOf(choice.message)));
  return usage && withSearch(usage, cited);
}

/** Whether a message or delta cites a source on the web, which means that there was a search. */
function citesTheWeb(message: JsonObject | undefined): boolean {
  const annotations = message?.annotations;
  return Array.isArray(annotations) && objectsIn(annotations).some(({ type }) => type === "url_citation");
}

/** Citations without a count of searches in the usage count as one search. */
function withSearch(usage: Usage, cited: boolean): Usage {
  if (!cited || usage.toolCalls.web_search) return usage;
  return { ...usage, toolCalls: { ...usage.toolCalls, web_search: 1 } };
}

/** llama.cpp: tokens evaluated, tokens from its cache, tokens written. */
function readTimings(value: unknown): Usage | undefined {
  const timings = objectOf(value);
  const evaluated = plausibleCount(timings?.prompt_n);
  const written = plausibleCount(timings?.predicted_n);
  if (evaluated === undefined || written === undefined) return undefined;
  const cached = largestCount(timings?.cache_n);
  const input = evaluated + cached;
  return usageOfIncluded({ input, output: written, total: undefined, cached, written: 0, written1h: 0, reasoning: 0 });
}

/**
 * The usage of several choices together: their input was read once, their outputs add up.
 * @returns undefined if none of them has a count.
 */
function joinedUsage(choices: Iterable<Usage>): Usage | undefined {
  let joined: Usage | undefined;
  for (const usage of choices) joined = joined ? join(joined, usage) : usage;
  return joined;
}

function join(one: Usage, other: Usage): Usage {
  return {
    ...(totalInput(one) >= totalInput(other) ? one : other),
    output: addCounts(one.output, other.output),
    reasoning: addCounts(one.reasoning, other.reasoning),
    toolCalls: mergedCalls(one.toolCalls, other.toolCalls),
  };
}

/** Writes a `usage` object for a chat client. */
export function writeUsage(usage: Usage): JsonObject {
  const cacheWrite = usage.cacheWrite + usage.cacheWrite1h;
  const prompt = usage.input + usage.cachedInput + cacheWrite;
  return {
    prompt_tokens: prompt,
    completion_tokens: usage.output,
    total_tokens: prompt + usage.output,
    prompt_tokens_details: { cached_tokens: usage.cachedInput, cache_write_tokens: cacheWrite },
    completion_tokens_details: { reasoning_tokens: usage.reasoning },
  };
}

/*
 * The usage of a chat stream from its chunks (docs/usage-forms.md): at the end, in the last chunk with content, in each
 * chunk, or inside the choices, once or more often. Counts in a stream are snapshots of what has been used so far: a
 * later one replaces an earlier one. Only choices are added up.
 */

/** The most choices that are counted separately; the protocol allows no more. */
export const CHOICES_MAX = 128;

export class ChatStreamUsage {
  readonly #asked: number;
  /** The count of the whole reply: outside of the choices, or next to the only one. */
  #whole: Usage | undefined;
  /** The counts of each of several choices. */
  readonly #ofChoice = new Map<number, Usage>();
  /** The last count in a chunk with a choice: of that choice alone, or of all so far. */
  #beside: Usage | undefined;
  /** Whether each such count was above the one before, as when one counter counts all choices. */
  #oneCounter = true;
  /** Whether the whole was counted after the choices. */
  #wholeIsLast = false;
  readonly #seen = new Set<number>();
  readonly #finished = new Set<number>();
  /** Choices with output that no count has included yet. */
  readonly #behind = new Set<number>();
  /** Whether a source on the web was cited. */
  #cited = false;
  #ended = false;
  /** The usage that was last computed; undefined: outdated or not computed yet. */
  #latest: Usage | undefined;

  /** @param choices number of choices that the client asked for (`n`). */
  constructor(choices: number) {
    this.#asked = choices;
  }

  /**
   * Looks at a chunk.
   * @param produced whether it contains model output.
   */
  see(chunk: JsonObject, produced: boolean): void {
    const choices = objectsIn(chunk.choices);
    if (produced) for (const choice of choices) this.#noteProduced(indexOf(choice));
    for (const choice of choices) {
      this.#noteChoice(indexOf(choice), finishOf(choice.finish_reason) !== undefined);
      const own = readUsage(choice.usage);
      if (!own) continue;
      this.#oneCounter = false;
      this.#noteOfChoice(indexOf(choice), own);
    }
    const usage = readReplyUsage(chunk);
    const [only] = choices;
    if (usage && only && this.#asked > 1 && choices.length === 1) this.#noteBeside(indexOf(only), usage, produced);
    else if (usage) this.#noteWhole(usage);
    if (!this.#cited && choices.some((choice) => citesTheWeb(objectOf(choice.delta)))) {
      this.#cited = true;
      this.#latest = undefined;
    }
  }

  #noteProduced(index: number): void {
    if (this.#behind.size < CHOICES_MAX) this.#behind.add(index);
  }

  #noteChoice(index: number, finished: boolean): void {
    if (this.#seen.size < CHOICES_MAX) this.#seen.add(index);
    if (finished && this.#finished.size < CHOICES_MAX) this.#finished.add(index);
  }

  #noteWhole(usage: Usage): void {
    this.#latest = undefined;
    this.#whole = laterUsage(this.#whole, usage);
    this.#wholeIsLast = true;
    this.#behind.clear();
  }

  /**
   * With several choices, a count next to one of them counts that choice's own tokens so far. Exception: the counts
   * grow as one counter of all choices does, that is, they never fall and rise with all output.
   */
  #noteBeside(index: number, usage: Usage, produced: boolean): void {
    const before = this.#beside?.output ?? 0;
    if (usage.output < before || (produced && usage.output === before)) this.#oneCounter = false;
    this.#beside = laterUsage(this.#beside, usage);
    this.#noteOfChoice(index, usage);
  }

  #noteOfChoice(index: number, usage: Usage): void {
    this.#latest = undefined;
    if (!this.#ofChoice.has(index) && this.#ofChoice.size >= CHOICES_MAX) return;
    this.#ofChoice.set(index, laterUsage(this.#ofChoice.get(index), usage));
    this.#wholeIsLast = false;
    this.#behind.delete(index);
  }

  /** The terminal marker was received. */
  end(): void {
    this.#ended = true;
  }

  /** Looks at the chunk in which the server reports its failure; a count in it is final. */
  seeFailure(chunk: JsonObject, produced: boolean): void {
    this.see(chunk, produced);
    if (readWholeUsage(chunk) !== undefined) this.end();
  }

  /** The usage so far. The same object until more is known, so that the choices are not added up for each chunk. */
  get usage(): Usage | undefined {
    this.#latest ??= this.#known();
    return this.#latest;
  }

  #known(): Usage | undefined {
    const whole = this.#whole;
    // Checked first, because there may be many choices and the count of the whole is nearly always the last.
    if (this.#wholeIsLast) return whole && withSearch(whole, this.#cited);
    const summed = (this.#oneCounter ? this.#beside : undefined) ?? joinedUsage(this.#ofChoice.values());
    // A count of the whole from before the choices' last counts is outdated if they add up to more.
    const isBehind = summed !== undefined && summed.output > (whole?.output ?? -1);
    const usage = isBehind ? summed : whole;
    return usage && withSearch(usage, this.#cited);
  }

  /** Whether `usage` is final: every choice has ended, and nothing was produced after the last count. */
  get final(): boolean {
    if (this.#behind.size > 0 || (this.#whole === undefined && this.#ofChoice.size === 0)) return false;
    if (this.#ended) return true;
    const ended = [...this.#seen].every((index) => this.#finished.has(index));
    return ended && this.#finished.size >= this.#asked;
  }
}

function indexOf({ index }: JsonObject): number {
  return typeof index === "number" ? index : 0;
}

/** A later count replaces an earlier one. A side that the later one lacks is kept from the earlier one. */
function laterUsage(before: Usage | undefined, later: Usage): Usage {
  if (!before) return later;
  const toolCalls = mergedCalls(before.toolCalls, later.toolCalls);
  const counted = totalInput(before) > 0;
  if (later.unsplit !== undefined && counted) {
    return { ...before, output: Math.max(before.output, later.unsplit - totalInput(before)), toolCalls };
  }
  if (later.unsplit !== undefined) return { ...later, toolCalls };
  const { outputUncounted: _, ...sides } = totalInput(later) > 0 ? later : before;
  const { output, reasoning, outputUncounted } = later.output > 0 || before.outputUncounted ? later : before;
  return { ...sides, output, reasoning, toolCalls, ...(outputUncounted ? { outputUncounted } : {}) };
}
