/**
 * The one vocabulary between the three protocols: each decodes to it and encodes from it, so there are three pairs of
 * translators and not six. Requests, whole replies and stream events, as plain values; nothing here reads a clock or a
 * socket. What only one protocol knows rides in `rest`, so that a loss can be named (ARCHITECTURE.md promise 9). Rule
 * numbers are those of docs/translation-rules.md.
 */

import type { Effort } from "../values/catalog.ts";
import type { JsonObject } from "../values/json-object.ts";
import type { Protocol } from "../values/protocol.ts";
import type { Usage } from "../values/tokens/usage.ts";

// ---------------------------------------------------------------------------------------------- parts of a conversation

/** Where a prompt cache may be cut: after the part that carries it. */
export interface CacheBreakpoint {
  readonly ttl: "short" | "long";
  /** The life in the client's own words, for a target that knows them; undefined: the default. */
  readonly told?: string | undefined;
}

/** A path to a member of the client's body, spelled as the client's protocol spells it (`messages[3].content[0]`). */
type Param = string;

export interface TextPart {
  readonly type: "text";
  readonly text: string;
  readonly cache?: CacheBreakpoint | undefined;
  /**
   * True for the first part of a message that the client sent as a message of its own within one assistant turn: where
   * the target knows one string only, a blank line separates it from the text before (docs/translation-rules.md rule
   * 14).
   */
  readonly startsMessage?: boolean | undefined;
}

/** Bytes, an address, or an upstream's own file id (which no other vendor can read). */
export type MediaSource =
  | {
      readonly kind: "base64";
      /** In lower case, without parameters. */
      readonly mediaType: string;
      /** Of text, as far as it is named. */
      readonly charset: string | undefined;
      readonly data: string;
    }
  | { readonly kind: "url"; readonly url: string }
  | { readonly kind: "id"; readonly id: string };

export interface ImagePart {
  readonly type: "image";
  readonly source: MediaSource;
  readonly detail?: string | undefined;
  readonly cache?: CacheBreakpoint | undefined;
  readonly param: Param;
}

/** A document. Plain text files are `text` sources; everything else is bytes with a media type, or an address. */
export interface FilePart {
  readonly type: "file";
  readonly source: MediaSource | { readonly kind: "text"; readonly text: string };
  readonly name?: string | undefined;
  readonly cache?: CacheBreakpoint | undefined;
  readonly param: Param;
}

/** Sound from the client; every target refuses it but the protocol that it came from (rule 18). */
interface AudioPart {
  readonly type: "audio";
  readonly param: Param;
}

/** The name of a deferred tool that a tool search found (messages: `tool_reference`). */
interface ToolReferencePart {
  readonly type: "tool-reference";
  readonly name: string;
}

interface RefusalPart {
  readonly type: "refusal";
  readonly text: string;
  readonly startsMessage?: boolean | undefined;
}

/** A stretch of reasoning: messages `thinking` and `redacted_thinking`, responses `reasoning`, chat `reasoning_content`. */
export interface ReasoningPart {
  readonly type: "reasoning";
  /** What may be read: thinking text, or the summaries joined by a blank line. Empty when only `opaque` is there. */
  readonly text: string;
  /**
   * What must come back unread: a signature, encrypted content, redacted data, or one of our envelopes (`gw1.`).
   * Undefined when there is none.
   */
  readonly opaque: string | undefined;
}

/** What a call is a call of. `function` and `custom` exist in two protocols; the others are client-run typed tools. */
export type ToolKind = "function" | "custom" | "local_shell" | "shell" | "apply_patch" | "tool_search";

/** A tool's name as the client knows it. */
export interface ToolRef {
  readonly kind: ToolKind;
  readonly name: string;
  readonly namespace?: string | undefined;
}

export interface ToolCallPart {
  readonly type: "tool-call";
  /** The id as the client wrote it; encoders make it safe (rule 35). */
  readonly id: string;
  readonly tool: ToolRef;
  /** `custom`: the free text. All others: arguments as JSON text (typed tools in their function form, tool-typed.ts). */
  readonly input: string;
  /** Where a complaint about this call points. */
  readonly param: Param;
}

export interface ToolResult {
  readonly callId: string;
  readonly content: readonly (TextPart | ImagePart | FilePart | ToolReferencePart)[];
  /** True when the client wrote one string and not a list. */
  readonly plain: boolean;
  readonly isError: boolean;
  readonly cache?: CacheBreakpoint | undefined;
  readonly param: Param;
}

export type UserPart = TextPart | ImagePart | FilePart | AudioPart;
export type AssistantPart = TextPart | RefusalPart | ReasoningPart | ToolCallPart;

/** System text in the middle of the conversation (rule 10); a leading run is in `HubRequest.system`. */
export interface SystemTurn {
  readonly role: "system";
  readonly parts: readonly TextPart[];
  readonly param: Param;
}

export interface UserTurn {
  readonly role: "user";
  readonly parts: readonly UserPart[];
  /** True when the client wrote one string and not a list. */
  readonly plain: boolean;
  readonly param: Param;
}

/** Everything that the model said in one go, in order. */
export interface AssistantTurn {
  readonly role: "assistant";
  readonly parts: readonly AssistantPart[];
  readonly param: Param;
}

/** Results of calls; decoders leave them where the client put them, and pairing is already proven (rule 12). */
export interface ToolTurn {
  readonly role: "tool";
  readonly results: readonly ToolResult[];
  readonly param: Param;
}

export type Turn = SystemTurn | UserTurn | AssistantTurn | ToolTurn;

// ------------------------------------------------------------------------------------------------------------- tools

/** The grammar of a freeform tool; undefined definition: any text. */
export interface Grammar {
  readonly syntax: string;
  readonly definition: string;
}

export interface FunctionTool {
  readonly type: "function";
  readonly tool: ToolRef;
  readonly description: string | undefined;
  /** JSON Schema of the arguments; undefined when the client gave none. */
  readonly schema: JsonObject | undefined;
  readonly strict: boolean | undefined;
  readonly cache?: CacheBreakpoint | undefined;
  readonly param: Param;
}

export interface CustomTool {
  readonly type: "custom";
  readonly tool: ToolRef;
  readonly description: string | undefined;
  readonly grammar: Grammar | undefined;
  readonly param: Param;
}

/**
 * A tool that the client runs and whose shape the client's protocol knows by its type: responses `local_shell`,
 * `shell`, `apply_patch`, client `tool_search`; messages `bash_*`, `text_editor_*`, `memory_*` (kind `function`).
 */
export interface TypedTool {
  readonly type: "typed";
  readonly tool: ToolRef;
  /** The definition as the client wrote it: two of one name are one tool only if they are written alike. */
  readonly native: JsonObject;
  /** The description for a protocol that does not know the type. */
  readonly description: string;
  readonly schema: JsonObject;
  readonly param: Param;
}

/** A tool that the vendor's servers would run (rule 33). */
export interface HostedTool {
  readonly type: "hosted";
  /** The tool's own type (`web_search_20250305`, `code_interpreter`; chat's `web_search_options` is `web_search`). */
  readonly hosted: string;
  readonly native: JsonObject;
  /** Points at the member that a refusal names (`tools[0].type`, `tools.0.type`, `web_search_options`). */
  readonly param: Param;
  /** True when it was asked for by a parameter of its own: then it is never dropped in silence (rule 30). */
  readonly demanded: boolean;
}

export type ToolDefinition = FunctionTool | CustomTool | TypedTool | HostedTool;

export type ToolChoice =
  | { readonly mode: "auto" | "none" | "required" }
  /** One tool by name; `kind` is what the client called it. */
  | { readonly mode: "named"; readonly tool: ToolRef }
  /** A hosted tool is forced; nothing but its own vendor can obey. */
  | { readonly mode: "hosted"; readonly hosted: string }
  | { readonly mode: "allowed"; readonly required: boolean; readonly tools: readonly ToolRef[] };

// ------------------------------------------------------------------------------------------------------------ request

/** The client's output limit and the member that it stood in. */
interface OutputLimit {
  readonly param: Param;
  readonly tokens: number;
}

/** Each member as the client gave it; undefined when absent. */
interface Sampling {
  readonly temperature: number | undefined;
  readonly topP: number | undefined;
  readonly topK: number | undefined;
}

export type OutputFormat =
  | { readonly type: "json_object" }
  | {
      readonly type: "json_schema";
      readonly name: string | undefined;
      readonly description: string | undefined;
      readonly strict: boolean | undefined;
      readonly schema: JsonObject;
    };

/** What the client wants of the model's reasoning (rule 27). */
export interface ReasoningWish {
  /** The client's explicit effort; `none` is in `off`. */
  readonly effort: Exclude<Effort, "none"> | undefined;
  /** True when the client switched reasoning off, in any dialect. */
  readonly off: boolean;
  /** Messages `thinking.budget_tokens`. */
  readonly budgetTokens: number | undefined;
  /** Messages `thinking.type` other than off, as given; undefined: the client said nothing. */
  readonly thinking: "enabled" | "adaptive" | undefined;
  /** Messages `thinking.display`. */
  readonly display: string | undefined;
  /** Responses `reasoning.summary`; undefined when absent or null. */
  readonly summary: string | undefined;
  /** The member that a refusal or a drop names. */
  readonly param: Param;
}

/** What the reply must look like beyond its content; copied into the `ReplyPlan`. */
interface ReplyWish {
  /** Chat: a last chunk with usage was asked for (`stream_options.include_usage`). */
  readonly includeUsage: boolean;
  /** Responses: `include` has `reasoning.encrypted_content`. */
  readonly encryptedReasoning: boolean;
  /** Chat: the request used `functions` and not `tools` (rule 37). */
  readonly deprecatedFunctions: boolean;
  /** Responses: whether `store` is not false. */
  readonly referable: boolean;
  /** Responses: the members that every response object repeats (rule 45). Empty for the others. */
  readonly echo: JsonObject;
}

/** A member that only the client's protocol knows. */
export interface RestField {
  readonly param: Param;
  readonly value: unknown;
  /**
   * `hint`: leaving it out changes nothing that the client can see (rule 3), and it is named apart; `meaning`: it is
   * dropped and named; `required`: leaving it out would change the answer's meaning, so the request is refused.
   */
  readonly weight: "hint" | "meaning" | "required";
  /** The targets that have a word for it all the same; undefined: none. */
  readonly carriedBy?: readonly Protocol[] | undefined;
  /** Whether no protocol lists it: the name is the client's own. */
  readonly isUnlisted?: boolean | undefined;
}

/** What accept has already read of a body. */
export interface HubFacts {
  readonly model: string;
  readonly stream: boolean;
}

/** A request, from any protocol. */
export interface HubRequest {
  readonly client: Protocol;
  /** The model as the client typed it. */
  readonly model: string;
  readonly stream: boolean;
  /** The leading run of system and developer text, one part per part; attribution text is already gone (rule 11). */
  readonly system: readonly TextPart[];
  readonly turns: readonly Turn[];
  readonly tools: readonly ToolDefinition[];
  readonly toolChoice: ToolChoice | undefined;
  readonly parallelTools: boolean | undefined;
  readonly outputLimit: OutputLimit | undefined;
  readonly sampling: Sampling;
  readonly stop: readonly string[];
  readonly format: OutputFormat | undefined;
  readonly verbosity: string | undefined;
  readonly reasoning: ReasoningWish;
  /** Token probabilities: how many alternatives, and the member that asked. Undefined: not wanted. */
  readonly logprobs: { readonly top: number | undefined; readonly param: Param } | undefined;
  /** `safety_identifier`, `user` or `metadata.user_id`. */
  readonly userId: string | undefined;
  readonly serviceTier: string | undefined;
  /** OpenAI's prompt cache members by their wire names (`prompt_cache_key`, `prompt_cache_options`, ...). */
  readonly promptCache: JsonObject;
  /** A breakpoint that the server shall set by itself at the end of what can be cached (`cache_control` of the body). */
  readonly cache?: CacheBreakpoint | undefined;
  /** Chat and responses `metadata`: never kept here, echoed by responses. */
  readonly metadata: JsonObject | undefined;
  /** Chat and responses `moderation`. */
  readonly moderation: unknown;
  readonly reply: ReplyWish;
  readonly rest: readonly RestField[];
}

// ------------------------------------------------------------------------------------------------ what the reply needs

/** The tools by the names that the upstream got: upstream name -> the client's tool (rules 33 and 34). */
export type RestoreMap = ReadonlyMap<string, ToolRef>;

/** What the reply's translation must know of the request; made by `encodeRequest`, plain data. */
export interface ReplyPlan {
  readonly client: Protocol;
  readonly upstream: Protocol;
  /** The model as the client typed it: echoed by every object and event (rule 1). */
  readonly model: string;
  /** The upstream's name of the model: goes into envelopes. */
  readonly upstreamModel: string;
  /** Other names under which the upstream may answer for it. */
  readonly answersAs?: readonly string[] | undefined;
  /** The upstream whose account alone may read its reasoning: goes into envelopes. Undefined: any may. */
  readonly account: string | undefined;
  readonly stream: boolean;
  readonly tools: RestoreMap;
  /** Stop strings that the reply side must watch for; empty when the upstream does it (rule 25). */
  readonly emulateStop: readonly string[];
  /** Chat: whether the client asked for the usage chunk. */
  readonly includeUsage: boolean;
  /** Chat: answer with `function_call` in place of `tool_calls` (rule 37). */
  readonly deprecatedFunctions: boolean;
  readonly reasoning: ReplyReasoning;
  /** Responses: whether the client may refer to the reply's items by their ids. */
  readonly referable: boolean;
  /** Responses: what every response object repeats. */
  readonly echo: JsonObject;
}

export interface ReplyReasoning {
  /**
   * `full`: text and envelope. `opaque`: an empty block that carries the envelope only, as for a messages client with
   * `display: omitted` whose upstream wants its reasoning back. `none`: the client gets nothing of it (rule 39).
   */
  readonly visibility: "full" | "opaque" | "none";
  /** Responses: reasoning text goes to `summary` (true) or to `content` (false) (rule 38). */
  readonly summary: boolean;
  /** Whether an envelope is sent along: messages always, responses when included, chat never. */
  readonly envelope: boolean;
  /** Whether the chat upstream leaves reasoning in its text; undefined: it does not. */
  readonly inText?: "none" | "tags" | "unopened" | undefined;
}

/** A request in the upstream's protocol. */
export interface TranslatedRequest {
  readonly body: Uint8Array;
  /** Members of the client's body that were left out though they mean something to the client (promise 9). */
  readonly dropped: readonly string[];
  /** Those that no protocol lists, beside them. */
  readonly unlisted: readonly string[];
  /** Members that were left out and whose absence the client cannot see (docs/translation-rules.md rule 3). */
  readonly ignored: readonly string[];
  /** The name of the tier that `body` asks for (values/members/tier.ts). */
  readonly tier: string | undefined;
  readonly plan: ReplyPlan;
}

// -------------------------------------------------------------------------------------------------------------- reply

/** Why the model stopped; rule 43 maps each to each protocol. */
export type StopReason =
  | "end"
  | "tool-calls"
  | "output-limit"
  | "context-limit"
  | "stop-sequence"
  | "refusal"
  | "pause";

export interface Stop {
  readonly reason: StopReason;
  /** The matched string, for `stop-sequence`. */
  readonly stopSequence: string | undefined;
  /** For `refusal`: what the vendor said about it. */
  readonly refusal: { readonly category: string | null; readonly explanation: string | null } | undefined;
}

/** A source that the text leans on; offsets are UTF-16 positions in the text of its block. */
export interface Citation {
  readonly url: string;
  readonly title: string;
  readonly startIndex: number | undefined;
  readonly endIndex: number | undefined;
}

/** One thing that the model produced, in order. `logprobs` is the list of either OpenAI protocol, untouched. */
export type ReplyItem =
  | {
      readonly type: "text";
      readonly text: string;
      /** Responses: true for the first part of a message item; chat and messages: true for every text. */
      readonly startsMessage: boolean;
      readonly citations: readonly Citation[];
      readonly logprobs: readonly unknown[] | undefined;
    }
  | { readonly type: "refusal"; readonly text: string }
  /** An image that the model made: a data URL, or an http address. */
  | { readonly type: "image"; readonly url: string }
  /** `redacted` is true where nothing of it may be read. */
  | (ReasoningPart & {
      /** The block or item as the upstream's protocol writes it: what an envelope seals. */
      readonly native: unknown;
      readonly redacted: boolean;
    })
  | {
      readonly type: "tool-call";
      readonly id: string;
      /** As the upstream named it until `RestoreMap` has been applied, then as the client knows it. */
      readonly tool: ToolRef;
      readonly input: string;
    };

/** A whole reply. */
export interface HubReply {
  /** The upstream's id; clients get one of their own protocol's form (rule 7). */
  readonly upstreamId: string | undefined;
  readonly items: readonly ReplyItem[];
  readonly stop: Stop;
  /** Undefined while the upstream has said nothing believable. */
  readonly usage: Usage | undefined;
  readonly serviceTier: string | undefined;
  /** Seconds since the epoch by the upstream's clock, if it said. */
  readonly createdS: number | undefined;
}

// ------------------------------------------------------------------------------------------------------ stream events

/**
 * Names one block of the upstream's stream from its start to its end. Blocks of different keys may interleave; the
 * encoder of a protocol that wants them one after the other puts them in order (rule 56).
 */
export type BlockKey = string;

/**
 * The upstream's stream, event by event. Order: one `reply-start`; blocks, each `-start`, `-delta`s, `-end`, or one `image`; any number of
 * `usage-update`s, pings and `reply-stopping`s; then `reply-stop` and `reply-end`, or `reply-error`; nothing after.
 */
export type ReplyEvent =
  | {
      readonly type: "reply-start";
      readonly upstreamId: string | undefined;
      readonly serviceTier: string | undefined;
      readonly createdS: number | undefined;
    }
  | { readonly type: "text-start"; readonly key: BlockKey; readonly startsMessage: boolean }
  | {
      readonly type: "text-delta";
      readonly key: BlockKey;
      readonly text: string;
      readonly logprobs: readonly unknown[] | undefined;
    }
  | { readonly type: "text-citation"; readonly key: BlockKey; readonly citation: Citation }
  | { readonly type: "text-end"; readonly key: BlockKey }
  | { readonly type: "refusal-start"; readonly key: BlockKey }
  | { readonly type: "refusal-delta"; readonly key: BlockKey; readonly text: string }
  | { readonly type: "refusal-end"; readonly key: BlockKey }
  | { readonly type: "reasoning-start"; readonly key: BlockKey; readonly redacted: boolean }
  /** Deltas of a new summary part begin with a blank line; the decoder has put it there. */
  | { readonly type: "reasoning-delta"; readonly key: BlockKey; readonly text: string }
  /** `native` is the whole block or item as the upstream's protocol writes it: what the envelope seals. */
  | {
      readonly type: "reasoning-end";
      readonly key: BlockKey;
      readonly opaque: string | undefined;
      readonly native: unknown;
    }
  /** Given once id and name are both known; `tool` as in `ReplyItem`. */
  | { readonly type: "tool-start"; readonly key: BlockKey; readonly id: string; readonly tool: ToolRef }
  /** A piece of the upstream's arguments text (or free text for a native custom tool). */
  | { readonly type: "tool-delta"; readonly key: BlockKey; readonly input: string }
  /** `input` is the whole text; equal to the deltas joined, or all of it when there were none. */
  | { readonly type: "tool-end"; readonly key: BlockKey; readonly input: string }
  /** A whole block in one event, as in `ReplyItem`. */
  | { readonly type: "image"; readonly key: BlockKey; readonly url: string }
  /** A cumulative snapshot: replaces the one before, never adds (rule 44). */
  | { readonly type: "usage-update"; readonly usage: Usage }
  /** The upstream has said why it stops, and all blocks have ended; its count, or even another block, may follow. */
  | { readonly type: "reply-stopping"; readonly stop: Stop }
  | { readonly type: "reply-stop"; readonly stop: Stop }
  /** The upstream's own terminal marker has been seen. */
  | { readonly type: "reply-end" }
  | { readonly type: "ping" }
  /** The upstream reported a failure in its stream (rule 50). `code` is its machine-readable word, if it gave one. */
  | { readonly type: "reply-error"; readonly code: string | undefined; readonly message: string };

/** An event that belongs to a block. */
export type BlockEvent = Extract<ReplyEvent, { readonly key: BlockKey }>;

// ------------------------------------------------------------------------------------------------------- constructors

/** A text part without ornaments. */
export function textPart(text: string): TextPart {
  return { type: "text", text };
}

/** A stop without details. */
export function stopFor(reason: StopReason): Stop {
  return { reason, stopSequence: undefined, refusal: undefined };
}
