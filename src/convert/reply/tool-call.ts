/** A tool call of an upstream as the client knows it: names restored, wrappers taken off, ids always there. */
import type { ConvertContext } from "../exchange.ts";
import type { ReplyPlan, ToolRef } from "../hub.ts";
import { flatName, restoreTool } from "../rules/tool-names.ts";
import { unwrapInput } from "../rules/tool-wrap.ts";

/** Chance for ids. */
export type Ids = Pick<ConvertContext, "randomId">;

/** Random characters of an id that we make up. */
const CALL_ID_CHARS = 24;

/** What an upstream says of a call besides its arguments. */
export interface CallIdentity {
  readonly name: string;
  /** The upstream wrote it as a freeform call, so its input is no JSON. */
  readonly freeform: boolean;
  readonly namespace?: string | undefined;
}

export interface RestoredCall {
  readonly tool: ToolRef;
  /**
   * A freeform tool that the upstream was offered as a function: its input is inside the arguments
   * (docs/translation-rules.md rule 33).
   */
  readonly wrapped: boolean;
}

/** The client's tool that a call is for; a tool that was never offered keeps its name (rule 34). */
export function restoreCall(plan: ReplyPlan, { name, freeform, namespace }: CallIdentity): RestoredCall {
  const flat = namespace === undefined ? name : flatName({ kind: "function", name, namespace });
  const upstreamName = plan.tools.has(flat) ? flat : name;
  const known = plan.tools.has(upstreamName);
  const tool: ToolRef = !known && freeform ? { kind: "custom", name } : restoreTool(plan.tools, upstreamName);
  return { tool, wrapped: !freeform && tool.kind === "custom" };
}

/** The client's input of a whole call; nothing at all is `{}` for everything but free text (rule 36). */
export function callInput({ tool, wrapped }: RestoredCall, freeform: boolean, text: string): string {
  if (wrapped) return unwrapInput(tool, text);
  if (freeform) return text;
  return text.trim() === "" ? "{}" : text;
}

/**
 * The ids of one reply's calls: the upstream's where it is there and new, else one of the client's protocol (rule 35).
 */
export class ReplyCallIds {
  readonly #prefix: string;
  readonly #ids: Ids;
  readonly #used = new Set<string>();

  constructor(plan: ReplyPlan, ids: Ids) {
    this.#prefix = plan.client === "messages" ? "toolu_" : "call_";
    this.#ids = ids;
  }

  /** The id that a call would keep; undefined where it would get one of ours. */
  kept(upstreamId: string | undefined): string | undefined {
    return upstreamId !== undefined && !this.#used.has(upstreamId) ? upstreamId : undefined;
  }

  /** The id of one more call: accumulators refuse a reply in which two calls share one. */
  take(upstreamId: string | undefined): string {
    const id = this.kept(upstreamId) ?? `${this.#prefix}${this.#ids.randomId(CALL_ID_CHARS)}`;
    this.#used.add(id);
    return id;
  }
}
