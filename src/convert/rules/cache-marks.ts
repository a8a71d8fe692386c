/**
 * Prompt caches in the form of each protocol: breakpoints, and the key by which servers of OpenAI's protocols group
 * prompts that belong together (docs/translation-rules.md rule 19).
 */
import type { JsonObject } from "../../values/json-object.ts";
import { BEGINNING_CHARS_MAX } from "../conversation.ts";
import type { ConvertContext, RouteFacts } from "../exchange.ts";
import type { CacheBreakpoint, HubRequest, Turn } from "../hub.ts";
import { optionalRecord, optionalText } from "./read.ts";

/** `prompt_cache_breakpoint` of chat and responses. */
export function promptCacheMark({ ttl }: JsonObject): CacheBreakpoint {
  return { ttl: ttl === "12h" ? "long" : "short", nativeTtl: typeof ttl === "string" ? ttl : undefined };
}

/** `cache_control` of messages, which routers also take on chat. */
export function cacheMark(value: unknown, param: string): CacheBreakpoint | undefined {
  const mark = optionalRecord(value, param);
  if (mark === undefined) return undefined;
  return { ttl: optionalText(mark.ttl, `${param}.ttl`) === "1h" ? "long" : "short" };
}

/** A breakpoint as chat and responses write it. */
export function writtenPromptCacheMark({ ttl, nativeTtl }: CacheBreakpoint): JsonObject {
  return { mode: "explicit", ttl: nativeTtl ?? (ttl === "long" ? "12h" : undefined) };
}

/** Whether a user's message has a breakpoint. */
export function hasUserMarks({ turns }: Pick<HubRequest, "turns">): boolean {
  return turns.some(
    (turn) => turn.role === "user" && turn.parts.some((part) => part.type !== "audio" && part.cache !== undefined),
  );
}

/**
 * The prompt cache members for the upstream. They are the client's own; a messages client gets a key that stays the
 * same while its conversation grows. The key is a digest under a secret, and includes the account: no two accounts
 * share a key, and no client can compute another account's.
 */
export function promptCacheMembers(hub: HubRequest, { capabilities }: RouteFacts, context: ConvertContext): JsonObject {
  if (hub.client !== "messages" || capabilities.promptCache === "client") return hub.promptCache;
  return { prompt_cache_key: context.digest(`prompt-cache\n${JSON.stringify(conversationOf(hub))}`) };
}

/** The client's name for the conversation (Claude Code names its session in `metadata.user_id`), else its beginning. */
function conversationOf({ userId, system, turns }: HubRequest): readonly string[] {
  if (userId !== undefined && userId !== "") return ["named", userId];
  const instructions = system.map(({ text }) => text).join("\n");
  const first = turns.find(({ role }) => role === "user");
  return ["begins", instructions.slice(0, BEGINNING_CHARS_MAX), textOf(first).slice(0, BEGINNING_CHARS_MAX)];
}

function textOf(turn: Turn | undefined): string {
  if (turn?.role !== "user") return "";
  return turn.parts.map((part) => (part.type === "text" ? part.text : part.type)).join("\n");
}
