/** The catalog and the groups, compiled from the configuration: looked up per request, never modified. */
import type { PassedMembers } from "./members.ts";
import type { Multiplier, Price } from "./price.ts";
import type { Protocol } from "./protocol.ts";
import type { Rule } from "./rules.ts";

/** What an upstream's model can do; docs/translation-rules.md rule 6 depends on these alone. */
export interface Capabilities {
  readonly sampling: "full" | "none";
  readonly thinking: "none" | "budget" | "adaptive" | "always" | "between" | "both";
  /**
   * What happens if a client disables thinking and the model has no switch for it: the request is accepted, or refused.
   */
  readonly thinkingOff: "ignore" | "reject";
  readonly progressInThinking: boolean;
  readonly accountBoundThinking: boolean;
  readonly efforts: readonly Effort[];
  readonly forcedToolChoice: boolean;
  readonly prefill: boolean;
  readonly midSystem: boolean;
  readonly structuredOutputs: boolean;
  readonly customTools: boolean;
  readonly namespaceTools: boolean;
  readonly reasoningContent: "off" | "read" | "roundtrip";
  /** How a chat server that wants its reasoning back accepts it. */
  readonly reasoningField: "reasoning_content" | "reasoning" | "thinking_parts" | "think_tags";
  /** The member that turns a chat server's thinking on and off. */
  readonly thinkingSwitch: "reasoning_effort" | "thinking" | "enable_thinking" | "chat_template_kwargs" | "reasoning";
  /** Whether a chat server leaves reasoning in the text, between tags; `unopened`: the opening tag is missing. */
  readonly thinkingInText: "none" | "tags" | "unopened";
  /**
   * Whose signature a chat server requires on calls, even on calls that it did not make (docs/translation-rules.md rule
   * 38).
   */
  readonly callSignatures: "none" | "google" | "vertex";
  readonly maxTokensField: "max_tokens" | "max_completion_tokens";
  readonly systemRole: "system" | "developer";
  readonly openaiNative: boolean;
  readonly stop: "native" | "emulate";
  readonly streamUsage: boolean;
  /** Whether cache breakpoints are added to requests of other protocols, or only those of the client are sent. */
  readonly promptCache: "auto" | "client";
  /** Minimum of tokens in a prefix before a messages server caches it: no breakpoint is added below. */
  readonly promptCacheMinTokens: number;
  readonly vision: boolean;
  readonly pdf: boolean;
}

export const EFFORTS = ["none", "minimal", "low", "medium", "high", "xhigh", "max"] as const;
export type Effort = (typeof EFFORTS)[number];

/** The capabilities of a route that configures none (rule 6); some depend on the upstream's protocol. */
export function defaultCapabilities(protocol: Protocol): Capabilities {
  return {
    sampling: "full",
    thinking: "none",
    thinkingOff: "ignore",
    progressInThinking: false,
    accountBoundThinking: false,
    efforts: ["low", "medium", "high"],
    forcedToolChoice: true,
    prefill: false,
    midSystem: false,
    structuredOutputs: true,
    customTools: protocol === "responses",
    namespaceTools: false,
    reasoningContent: "read",
    reasoningField: "reasoning_content",
    thinkingSwitch: "reasoning_effort",
    thinkingInText: "none",
    callSignatures: "none",
    maxTokensField: "max_tokens",
    systemRole: "system",
    openaiNative: false,
    stop: protocol === "responses" ? "emulate" : "native",
    streamUsage: true,
    promptCache: "auto",
    promptCacheMinTokens: 1_024,
    vision: true,
    pdf: true,
  };
}

/** One way to reach a model: the upstream, the model's name there, and the cost for the operator. */
export interface Route {
  readonly upstream: string;
  readonly protocol: Protocol;
  /** The model's name at the upstream. */
  readonly upstreamModel: string;
  /** Share of the traffic among routes of the same priority; above 0. */
  readonly weight: number;
  /** Lower is tried first. */
  readonly priority: number;
  /** What the upstream charges the operator; prices absorbed lines. */
  readonly cost: Price;
  readonly capabilities: Capabilities;
  /** The operator's changes to requests to this upstream, applied after the model's rules. */
  readonly rules: readonly Rule[];
  /** Unknown members that it gets anyway; undefined: none. */
  readonly passedMembers?: PassedMembers | undefined;
  /** Names under which the upstream may answer for the model, in addition to its own name and its dated versions. */
  readonly answersAs?: readonly string[] | undefined;
  /** Whether the upstream keeps responses that its clients may refer to (`stateful`). */
  readonly stateful?: boolean | undefined;
}

/** Minimum and maximum that are held for one image or one file; between them, its size decides. */
export interface MediaTokens {
  readonly image: number;
  readonly file: number;
  /** Undefined: the context. */
  readonly imageMax?: number | undefined;
  readonly fileMax?: number | undefined;
}

export interface Model {
  readonly name: string;
  readonly plans: readonly string[];
  readonly price: Price;
  readonly contextTokens: number;
  readonly maxOutputTokens: number;
  readonly defaultOutputTokens: number;
  /** Body bytes that count as one input token in the estimate; 3 unless configured. */
  readonly inputBytesPerToken: number;
  readonly mediaTokens: MediaTokens;
  /** Calls of each hosted tool that a request offers: how many its hold covers, and the maximum that is charged. */
  readonly toolCalls: { readonly held: number; readonly max: number };
  readonly routes: readonly Route[];
  /** The operator's changes to requests for this model, applied after the group's rules. */
  readonly rules: readonly Rule[];
  /** Bytes that the model's rules and those of any one of its routes can add to a body. */
  readonly addedInputBytes: number;
}

export type GroupKind = "time_card" | "pay_per_use";

/** Limits of an account within a group (or of each key, if `perKey`). Undefined: no limit. */
export interface Limits {
  readonly requestsPerMinute: number | undefined;
  readonly tokensPerMinute: number | undefined;
  /** Requests in flight; 100 unless configured. */
  readonly concurrency: number;
  readonly perKey: boolean;
}

export interface Group {
  readonly name: string;
  readonly kind: GroupKind;
  /** Model names, or prefixes written with a final `*`. */
  readonly models: readonly string[];
  readonly multiplier: Multiplier;
  readonly limits: Limits;
  /** For a time_card group: who pays if no card does. */
  readonly fallback?: "money" | undefined;
  /** The operator's changes to requests of the group's keys, applied before all other rules. */
  readonly rules: readonly Rule[];
  /** Bytes that these can add to a body. */
  readonly addedInputBytes: number;
}

/** A kind of time card for which codes can be issued. */
export interface CardKind {
  readonly name: string;
  readonly plan: string;
  readonly group: string;
  readonly lastsMs: number;
  readonly starts: "at_redemption" | "after_previous";
  /** The most that may be spent on the card, in nano-dollars; undefined: no quota. */
  readonly quotaSpend: bigint | undefined;
}

export interface Catalog {
  readonly models: ReadonlyMap<string, Model>;
  readonly groups: ReadonlyMap<string, Group>;
  readonly cards: ReadonlyMap<string, CardKind>;
  readonly plans: ReadonlySet<string>;
  readonly defaultPlan: string;
  /** Changes with every configuration that changes anything above; part of each ledger line. */
  readonly version: string;
}

/** A longer list is searched by an index: a list of a thousand names would be compared with each of a thousand models. */
const SEARCHED_MAX = 8;

interface PatternIndex {
  readonly names: ReadonlySet<string>;
  readonly prefixes: readonly string[];
}

const INDEXES = new WeakMap<readonly string[], PatternIndex>();

/** Whether a group serves a model: by exact name, or by a prefix that ends in `*`. */
export function groupServes({ models }: Pick<Group, "models">, modelName: string): boolean {
  if (models.length <= SEARCHED_MAX) {
    return models.some((pattern) =>
      pattern.endsWith("*") ? modelName.startsWith(pattern.slice(0, -1)) : pattern === modelName,
    );
  }
  const { names, prefixes } = indexOf(models);
  return names.has(modelName) || prefixes.some((prefix) => modelName.startsWith(prefix));
}

function indexOf(patterns: readonly string[]): PatternIndex {
  const known = INDEXES.get(patterns);
  if (known) return known;
  const isPrefix = (pattern: string): boolean => pattern.endsWith("*");
  const index = {
    names: new Set(patterns.filter((pattern) => !isPrefix(pattern))),
    prefixes: patterns.filter(isPrefix).map((pattern) => pattern.slice(0, -1)),
  };
  INDEXES.set(patterns, index);
  return index;
}
