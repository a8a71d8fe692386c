/**
 * The shared form of requests, through which the three protocols are translated; `hub-reply.ts` has that of replies.
 * Each protocol decodes to it and encodes from it, so there are three pairs of translators and not six. All values are
 * plain; nothing here reads a clock or a socket. What only one protocol knows is kept in `rest`, so that a loss can be
 * named (ARCHITECTURE.md promise 9). Rule numbers are those of docs/translation-rules.md.
 */

import type { Effort } from "../values/catalog.ts";
import type { JsonObject } from "../values/json-object.ts";
import type { Protocol } from "../values/protocol.ts";

// ---------------------------------------------------------------------------------------------- parts of a
// conversation

/** A prompt cache may end after the part that carries this. */
export interface CacheBreakpoint {
  readonly ttl: "short" | "long";
  /** The lifetime exactly as the client wrote it, for a target that knows the same values; undefined: the default. */
  readonly nativeTtl?: string | undefined;
}

/** A path to a member of the client's body, in the spelling of the client's protocol (`messages[3].content[0]`). */
type Param = string;

export interface TextPart {
  readonly type: "text";
  readonly text: string;
  readonly cache?: CacheBreakpoint | undefined;
  /**
   * True for the first part of a message that the client sent separately within one assistant turn. A target that takes
   * only one string gets a blank line between it and the text before (docs/translation-rules.md rule 14).
   */
  readonly startsMessage?: boolean | undefined;
}

/** Bytes, a URL, or the file id of one upstream (which no other vendor can read). */
export type MediaSource =
  | {
      readonly kind: "base64";
      /** In lowercase, without parameters. */
      readonly mediaType: string;
      /** For text, if the client named it. */
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

/** A document. Plain text files are `text` sources; everything else is bytes with a media type, or a URL. */
export interface FilePart {
  readonly type: "file";
  readonly source: MediaSource | { readonly kind: "text"; readonly text: string };
  readonly name?: string | undefined;
  readonly cache?: CacheBreakpoint | undefined;
  readonly param: Param;
}

/** Audio from the client. Only its own protocol carries it; every other target refuses it (rule 18). */
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

/**
 * One block of reasoning: messages `thinking` and `redacted_thinking`, responses `reasoning`, chat `reasoning_content`.
 */
export interface ReasoningPart {
  readonly type: "reasoning";
  /** The readable part: thinking text, or the summaries joined by a blank line. Empty when there is only `opaque`. */
  readonly text: string;
  /**
   * The part that must come back unchanged: a signature, encrypted content, redacted data, or one of our envelopes
   * (`gw1.`). Undefined when there is none.
   */
  readonly opaque: string | undefined;
}

/**
 * The kind of tool that a call uses. `function` and `custom` exist in two protocols; the others are typed tools that
 * the client runs.
 */
export type ToolKind = "function" | "custom" | "local_shell" | "shell" | "apply_patch" | "tool_search";

/** A tool's name as the client knows it. */
export interface ToolRef {
  readonly kind: ToolKind;
  readonly name: string;
  readonly namespace?: string | undefined;
}

export interface ToolCallPart {
  readonly type: "tool-call";
  /** The id as the client wrote it; encoders make it valid for the target (rule 35). */
  readonly id: string;
  readonly tool: ToolRef;
  /**
   * `custom`: the free text. All others: arguments as JSON text (typed tools in their function form, see
   * tool-typed.ts).
   */
  readonly input: string;
  /** The path that an error about this call names. */
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

/** System text in the middle of the conversation (rule 10). System text at the beginning is in `HubRequest.system`. */
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

/** Everything that the model produced in one turn, in order. */
export interface AssistantTurn {
  readonly role: "assistant";
  readonly parts: readonly AssistantPart[];
  readonly param: Param;
}

/** Results of calls. Decoders keep them where the client put them and have already checked the pairing (rule 12). */
export interface ToolTurn {
  readonly role: "tool";
  readonly results: readonly ToolResult[];
  readonly param: Param;
}

export type Turn = SystemTurn | UserTurn | AssistantTurn | ToolTurn;

// ------------------------------------------------------------------------------------------------------------- tools

/** The grammar of a freeform tool. A tool without one takes any text. */
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
 * A tool that the client runs and whose shape the client's protocol defines by its type: responses `local_shell`,
 * `shell`, `apply_patch`, client `tool_search`; messages `bash_*`, `text_editor_*`, `memory_*` (kind `function`).
 */
export interface TypedTool {
  readonly type: "typed";
  readonly tool: ToolRef;
  /**
   * The definition as the client wrote it: two tools of one name are the same tool only if their definitions are equal.
   */
  readonly native: JsonObject;
  /** The description for a protocol that does not know the type. */
  readonly description: string;
  readonly schema: JsonObject;
  readonly param: Param;
}

/** A tool that the vendor's servers run (rule 33). */
export interface HostedTool {
  readonly type: "hosted";
  /** The tool's own type (`web_search_20250305`, `code_interpreter`; chat's `web_search_options` is `web_search`). */
  readonly hosted: string;
  readonly native: JsonObject;
  /** The path that a refusal names (`tools[0].type`, `tools.0.type`, `web_search_options`). */
  readonly param: Param;
  /** True when the client asked for it by a parameter of its own; then it is never dropped silently (rule 30). */
  readonly demanded: boolean;
}

export type ToolDefinition = FunctionTool | CustomTool | TypedTool | HostedTool;

export type ToolChoice =
  | { readonly mode: "auto" | "none" | "required" }
  /** One tool by name; `kind` is the kind that the client gave it. */
  | { readonly mode: "named"; readonly tool: ToolRef }
  /** A hosted tool is forced; only its own vendor can do that. */
  | { readonly mode: "hosted"; readonly hosted: string }
  | { readonly mode: "allowed"; readonly required: boolean; readonly tools: readonly ToolRef[] };

// ------------------------------------------------------------------------------------------------------------ request

/** The client's output limit and the member that held it. */
interface OutputLimit {
  readonly param: Param;
  readonly tokens: number;
}

/** Each member as the client sent it; undefined when absent. */
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

/** What the client asks for about the model's reasoning (rule 27). */
export interface RequestedReasoning {
  /** The client's explicit effort; `none` is in `off`. */
  readonly effort: Exclude<Effort, "none"> | undefined;
  /** True when the client switched reasoning off, in any protocol or vendor's form. */
  readonly off: boolean;
  /** Messages `thinking.budget_tokens`. */
  readonly budgetTokens: number | undefined;
  /** Messages `thinking.type`, unless it switches thinking off; undefined: not given. */
  readonly thinking: "enabled" | "adaptive" | undefined;
  /** Messages `thinking.display`. */
  readonly display: string | undefined;
  /** Responses `reasoning.summary`; undefined when absent or null. */
  readonly summary: string | undefined;
  /** The member that a refusal or a reported drop names. */
  readonly param: Param;
}

/** What the client asked of the reply apart from its content; copied into the `ReplyPlan`. */
interface RequestedReply {
  /** Chat: the client asked for a last chunk with usage (`stream_options.include_usage`). */
  readonly includeUsage: boolean;
  /** Responses: `include` has `reasoning.encrypted_content`. */
  readonly encryptedReasoning: boolean;
  /** Chat: the request used `functions` instead of `tools` (rule 37). */
  readonly deprecatedFunctions: boolean;
  /** Responses: whether `store` is not false. */
  readonly referable: boolean;
  /** Responses: the members that every response object repeats (rule 45). Empty for the other protocols. */
  readonly echo: JsonObject;
}

/** A member that only the client's protocol has. */
export interface RestField {
  readonly param: Param;
  readonly value: unknown;
  /**
   * What happens when the target cannot carry the member:
   * - `hint`: it is left out, which the client cannot notice (rule 3), and listed separately.
   * - `meaning`: it is dropped and named.
   * - `required`: the request is refused, because the answer would mean something else without it.
   */
  readonly weight: "hint" | "meaning" | "required";
  /** The targets that can carry it all the same; undefined: none. */
  readonly carriedBy?: readonly Protocol[] | undefined;
  /** Whether no protocol lists it: the client invented the name. */
  readonly isUnlisted?: boolean | undefined;
}

/** The members of a body that accept has already read. */
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
  /**
   * The system and developer text at the beginning, one part per part; attribution text is already removed (rule 11).
   */
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
  readonly reasoning: RequestedReasoning;
  /** Token probabilities: how many alternatives, and the member that asked for them. Undefined: not wanted. */
  readonly logprobs: { readonly top: number | undefined; readonly param: Param } | undefined;
  /** `safety_identifier`, `user` or `metadata.user_id`. */
  readonly userId: string | undefined;
  readonly serviceTier: string | undefined;
  /** OpenAI's prompt cache members by their wire names (`prompt_cache_key`, `prompt_cache_options`, ...). */
  readonly promptCache: JsonObject;
  /** A breakpoint that the server is to set itself at the end of what can be cached (`cache_control` of the body). */
  readonly cache?: CacheBreakpoint | undefined;
  /** Chat and responses `metadata`: never stored here, echoed by responses. */
  readonly metadata: JsonObject | undefined;
  /** Chat and responses `moderation`. */
  readonly moderation: unknown;
  readonly reply: RequestedReply;
  readonly rest: readonly RestField[];
}

// ------------------------------------------------------------------------------------------------ what the reply needs

/** Maps each tool name that was sent upstream to the client's tool (rules 33 and 34). */
export type RestoreMap = ReadonlyMap<string, ToolRef>;

/** What the translation of the reply must know of the request; plain data, made by `encodeRequest`. */
export interface ReplyPlan {
  readonly client: Protocol;
  readonly upstream: Protocol;
  /** The model as the client typed it: echoed by every object and event (rule 1). */
  readonly model: string;
  /** The upstream's name of the model, for envelopes. */
  readonly upstreamModel: string;
  /** Other model names that the upstream may answer with. */
  readonly answersAs?: readonly string[] | undefined;
  /** The upstream whose account alone can read its reasoning, for envelopes. Undefined: any account can. */
  readonly account: string | undefined;
  readonly stream: boolean;
  readonly tools: RestoreMap;
  /** Stop strings that the reply translation must watch for; empty when the upstream does it (rule 25). */
  readonly emulateStop: readonly string[];
  /** Chat: whether the client asked for the usage chunk. */
  readonly includeUsage: boolean;
  /** Chat: answer with `function_call` instead of `tool_calls` (rule 37). */
  readonly deprecatedFunctions: boolean;
  readonly reasoning: ReplyReasoning;
  /** Responses: whether the client may refer to the reply's items by their ids. */
  readonly referable: boolean;
  /** Responses: the members that every response object repeats. */
  readonly echo: JsonObject;
}

export interface ReplyReasoning {
  /**
   * How much of the reasoning the client gets (rule 39):
   * - `full`: text and envelope.
   * - `opaque`: an empty block that carries the envelope only, for a messages client with `display: omitted` whose
   *   upstream needs its reasoning back.
   * - `none`: nothing.
   */
  readonly visibility: "full" | "opaque" | "none";
  /** Responses: reasoning text goes to `summary` (true) or to `content` (false) (rule 38). */
  readonly summary: boolean;
  /** Whether the client gets an envelope: messages always, responses when it asked for it, chat never. */
  readonly envelope: boolean;
  /** How the chat upstream mixes reasoning into its text; undefined: it does not. */
  readonly inText?: "none" | "tags" | "unopened" | undefined;
}

/** A request in the upstream's protocol. */
export interface TranslatedRequest {
  readonly body: Uint8Array;
  /** Members of the client's body that were left out although they mean something to the client (promise 9). */
  readonly dropped: readonly string[];
  /** Members that were left out because no protocol lists them, in addition to `dropped`. */
  readonly unlisted: readonly string[];
  /** Members that were left out without an effect that the client can notice (docs/translation-rules.md rule 3). */
  readonly ignored: readonly string[];
  /** The name of the service tier that `body` asks for (values/members/tier.ts). */
  readonly tier: string | undefined;
  readonly plan: ReplyPlan;
}

// ------------------------------------------------------------------------------------------------------- constructors

/** A text part with no other member. */
export function textPart(text: string): TextPart {
  return { type: "text", text };
}
