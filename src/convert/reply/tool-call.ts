/**
 * Restores an upstream's tool call to the client's form: its name, its input without wrappers, and an id in any case.
 */
import type { ConvertContext } from "../exchange.ts";
import type { ReplyPlan, ToolRef } from "../hub.ts";
import { flatName, restoreTool } from "../rules/tool-names.ts";
import { unwrapInput } from "../rules/tool-wrap.ts";

/** Source of random ids. */
export type Ids = Pick<ConvertContext, "randomId">;

/** Random characters of an id that is made here. */
const CALL_ID_CHARS = 24;

/** What an upstream gives for a call in addition to its arguments. */
export interface CallIdentity {
  readonly name: string;
  /** Whether the upstream wrote it as a freeform call, so that its input is not JSON. */
  readonly freeform: boolean;
  readonly namespace?: string | undefined;
}

export interface RestoredCall {
  readonly tool: ToolRef;
  /**
   * Whether the tool is freeform but was offered upstream as a function; its input is then inside the arguments
   * (docs/translation-rules.md rule 33).
   */
  readonly wrapped: boolean;
}

/** The client's tool for a call; a tool that was never offered keeps its name (rule 34). */
export function restoreCall(plan: ReplyPlan, { name, freeform, namespace }: CallIdentity): RestoredCall {
  const flat = namespace === undefined ? name : flatName({ kind: "function", name, namespace });
  const upstreamName = plan.tools.has(flat) ? flat : name;
  const known = plan.tools.has(upstreamName);
  const tool: ToolRef = !known && freeform ? { kind: "custom", name } : restoreTool(plan.tools, upstreamName);
  return { tool, wrapped: !freeform && tool.kind === "custom" };
}

/** The client's input of a whole call. An empty input becomes `{}`, except free text (rule 36). */
export function callInput({ tool, wrapped }: RestoredCall, freeform: boolean, text: string): string {
  if (wrapped) return unwrapInput(tool, text);
  if (freeform) return text;
  return text.trim() === "" ? "{}" : text;
}

/**
 * The ids of one reply's calls: the upstream's id if it is present and not used yet, else a new one in the form of the
 * client's protocol (rule 35).
 */
export class ReplyCallIds {
  readonly #prefix: string;
  readonly #ids: Ids;
  readonly #used = new Set<string>();

  constructor(plan: ReplyPlan, ids: Ids) {
    this.#prefix = plan.client === "messages" ? "toolu_" : "call_";
    this.#ids = ids;
  }

  /** The id that a call would keep; undefined if it would get a new one. */
  kept(upstreamId: string | undefined): string | undefined {
    return upstreamId !== undefined && !this.#used.has(upstreamId) ? upstreamId : undefined;
  }

  /**
   * The id for one more call. Ids are unique, because the clients' accumulators refuse a reply in which two calls share
   * one.
   */
  take(upstreamId: string | undefined): string {
    const id = this.kept(upstreamId) ?? `${this.#prefix}${this.#ids.randomId(CALL_ID_CHARS)}`;
    this.#used.add(id);
    return id;
  }
}
