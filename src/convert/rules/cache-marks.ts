/** Where a prompt cache may be cut, in the words of each protocol (docs/translation-rules.md rule 19). */
import type { JsonObject } from "../../values/json-object.ts";
import type { CacheBreakpoint, HubRequest } from "../hub.ts";
import { optionalRecord, optionalText } from "./read.ts";

/** `prompt_cache_breakpoint` of chat and responses. */
export function promptCacheMark({ ttl }: JsonObject): CacheBreakpoint {
  return { ttl: ttl === "12h" ? "long" : "short", told: typeof ttl === "string" ? ttl : undefined };
}

/** `cache_control` of messages, which routers take on chat as well. */
export function cacheMark(value: unknown, param: string): CacheBreakpoint | undefined {
  const mark = optionalRecord(value, param);
  if (mark === undefined) return undefined;
  return { ttl: optionalText(mark.ttl, `${param}.ttl`) === "1h" ? "long" : "short" };
}

/** A breakpoint as chat and responses write it. */
export function writtenPromptCacheMark({ ttl, told }: CacheBreakpoint): JsonObject {
  return { mode: "explicit", ttl: told ?? (ttl === "long" ? "12h" : undefined) };
}

/** Whether a user's message has a breakpoint. */
export function hasUserMarks({ turns }: Pick<HubRequest, "turns">): boolean {
  return turns.some(
    (turn) => turn.role === "user" && turn.parts.some((part) => part.type !== "audio" && part.cache !== undefined),
  );
}
