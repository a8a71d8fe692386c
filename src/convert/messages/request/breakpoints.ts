/**
 * Cache breakpoints for clients whose own protocols need none: a messages server caches nothing but what ends at one
 * (docs/translation-rules.md rule 19).
 */
import { objectOf } from "../../../values/json-object.ts";
import type { RouteFacts } from "../../exchange.ts";
import type { HubRequest } from "../../hub.ts";
import { cacheControl } from "../shape.ts";
import type { ContentBlock, Message } from "./turns.ts";

/** Most cache breakpoints that one request may carry, the body's own among them. */
const BREAKPOINTS_MAX = 4;

/** Characters of text that count as a token: rather too few, since a breakpoint on too short a beginning costs nothing. */
const CHARS_PER_TOKEN = 3;

/** The parts of a request in the order in which they are cached. */
interface CachedParts {
  readonly tools: readonly ContentBlock[];
  readonly system: readonly ContentBlock[];
  readonly messages: readonly Message[];
}

/**
 * Takes the first of too many breakpoints away, and adds what is missing at the ends of the last two turns of the user,
 * of the system text and of the tools. The next request finds the end of this one's last turn at its second-last.
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

/** OpenAI's word for: no breakpoint but those that the request has. */
function choosesItsOwn({ promptCache }: HubRequest): boolean {
  return objectOf(promptCache.prompt_cache_options)?.mode === "explicit";
}

/** The blocks that should end something cached, the most useful first. */
function wantedEnds({ tools, system, messages }: CachedParts): readonly ContentBlock[] {
  const turns = messages.filter(({ role }) => role === "user").map(({ content }) => content.at(-1));
  return [turns.at(-1), turns.at(-2), system.at(-1), tools.at(-1)].filter((block) => block !== undefined);
}

/**
 * The first block that may get one: the beginning up to it is long enough, and no breakpoint of an hour comes later,
 * since the protocol wants the longer lives first.
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

/** The characters of all names and texts in a value; counting ends when there are `enough`. */
function charsOf(value: unknown, enough: number): number {
  if (typeof value === "string") return value.length;
  if (typeof value !== "object" || value === null) return value === undefined ? 0 : 1;
  let chars = 0;
  for (const [name, member] of Object.entries(value)) {
    if (chars >= enough) break;
    chars += (Array.isArray(value) ? 0 : name.length) + charsOf(member, enough - chars);
  }
  return chars;
}
