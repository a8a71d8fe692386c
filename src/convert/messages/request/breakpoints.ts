/**
 * Cache breakpoints for clients whose own protocols need none: a messages server caches only what ends at one
 * (docs/translation-rules.md rule 19).
 */
import { objectOf } from "../../../values/json-object.ts";
import type { RouteFacts } from "../../exchange.ts";
import type { HubRequest } from "../../hub.ts";
import { cacheControl } from "../shape.ts";
import type { ContentBlock, Message } from "./turns.ts";

/** The most cache breakpoints in one request, including the body's own. */
const BREAKPOINTS_MAX = 4;

/** Characters of text per token. Rather too few, because a breakpoint after too short a beginning costs nothing. */
const CHARS_PER_TOKEN = 3;

/** The parts of a request in the order in which they are cached. */
interface CachedParts {
  readonly tools: readonly ContentBlock[];
  readonly system: readonly ContentBlock[];
  readonly messages: readonly Message[];
}

/**
 * Removes the first breakpoints if there are too many, and adds missing ones at the ends of the last two user turns, of
 * the system text and of the tools. In the next request, the end of this request's last turn is that of its second-last
 * one, so its cache is found.
 */
export function settleBreakpoints(parts: CachedParts, hub: HubRequest, { capabilities }: RouteFacts): void {
  const blocks = [parts.tools, parts.system, ...parts.messages.map(({ content }) => content)].flat();
  const room = hub.cache === undefined ? BREAKPOINTS_MAX : BREAKPOINTS_MAX - 1;
  const marked = blocks.filter((block) => block.cache_control !== undefined);
  for (const block of marked.slice(0, Math.max(0, marked.length - room))) block.cache_control = undefined;
  if (capabilities.promptCache === "client" || choosesItsOwn(hub)) return;
  const earliest = earliestOf(blocks, hub, capabilities.promptCacheMinTokens * CHARS_PER_TOKEN);
  let left = room - marked.length;
  for (const block of wantedEnds(parts)) {
    if (left <= 0) return;
    if (block.cache_control !== undefined || blocks.indexOf(block) < earliest) continue;
    block.cache_control = cacheControl({ ttl: "short" });
    left -= 1;
  }
}

/** OpenAI's value for: only the breakpoints in the request. */
function choosesItsOwn({ promptCache }: HubRequest): boolean {
  return objectOf(promptCache.prompt_cache_options)?.mode === "explicit";
}

/** The blocks that should end a cached beginning, the most useful first. */
function wantedEnds({ tools, system, messages }: CachedParts): readonly ContentBlock[] {
  const turns = messages.filter(({ role }) => role === "user").map(({ content }) => content.at(-1));
  return [turns.at(-1), turns.at(-2), system.at(-1), tools.at(-1)].filter((block) => block !== undefined);
}

/**
 * The first block that may get one: the beginning up to it is long enough, and no breakpoint of an hour follows,
 * because the protocol requires longer lifetimes first.
 */
function earliestOf(blocks: readonly ContentBlock[], hub: HubRequest, charsMin: number): number {
  if (hub.cache?.ttl === "long") return blocks.length;
  const afterLong = blocks.findLastIndex(({ cache_control }) => objectOf(cache_control)?.ttl === "1h") + 1;
  let chars = 0;
  const longEnough = blocks.findIndex((block) => {
    chars += charsOf(block, charsMin - chars);
    return chars >= charsMin;
  });
  return longEnough < 0 ? blocks.length : Math.max(afterLong, longEnough);
}

/** The number of characters of all names and texts in a value; counting ends at `enough`. */
function charsOf(value: unknown, enough: number): number {
  if (typeof value === "string") return value.length;
  if (typeof value !== "object" || value === null) return value === undefined ? 0 : 1;
  let chars = 0;
  if (Array.isArray(value)) {
    for (const member of value) {
      if (chars >= enough) break;
      chars += charsOf(member, enough - chars);
    }
    return chars;
  }
  for (const [name, member] of Object.entries(value)) {
    if (chars >= enough) break;
    chars += name.length + charsOf(member, enough - chars);
  }
  return chars;
}
