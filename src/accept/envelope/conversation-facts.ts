/** Everything that the envelope needs to know about a conversation, collected in one walk. */

import { type Refusal, refusal } from "../../values/errors.ts";
import { isGiven, isObject, type JsonObject } from "../../values/json-object.ts";
import { formBytes, hostedType, toolsIn } from "../../values/members/hosted-tools.ts";
import { mistakenFor } from "../../values/members/shape.ts";
import { REASONING } from "../../values/members/shared.ts";
import { tierFault, tierOf } from "../../values/members/tier.ts";
import type { Protocol } from "../../values/protocol.ts";
import { mayBeAddress, mayHoldAddress, refusedAddress } from "./addresses.ts";
import { type Met, member, type Visitor, visitConversation, visitUnder } from "./conversation.ts";
import { MediaCount, mayHoldMedia } from "./media.ts";
import { ConversationNames } from "./names.ts";

/** The image that a tool paints over. */
const MASK = "input_image_mask";

export class ConversationFacts implements Visitor {
  readonly media = new MediaCount();
  readonly tools: HostedTools;
  /**
   * Set if a name could mean one thing here and another to the model's server, or if the server would open an address
   * with its own rights.
   */
  refused: Refusal | undefined;
  readonly #names = new ConversationNames();
  /** Whether the current object has a member that may hold media. */
  #mayWeigh = false;
  /** Whether the current object has a member that may be an address and does not hold media. */
  #mayName = false;

  constructor(protocol: Protocol, json: JsonObject) {
    this.tools = new HostedTools(protocol, json);
    visitConversation(protocol, json, this);
    // Of the tools at the top level, only the mask consists of objects like those of the conversation. The tools of
    // items have been visited already.
    for (const { [MASK]: mask } of toolsIn(json.tools)) visitUnder(mask, MASK, this);
    this.tools.seeChoice(json.tool_choice);
  }

  name(name: string, under: string): void {
    if (mayHoldMedia(name)) {
      this.#mayWeigh = true;
      return;
    }
    this.#mayName ||= mayBeAddress(name);
    this.refused ??= this.#names.refused(name, under);
  }

  object(met: Met): void {
    this.media.see(met, this.#mayWeigh);
    if (this.#mayWeigh || this.#mayName || mayHoldAddress(met.under)) this.refused ??= refusedAddress(met);
    this.#mayWeigh = false;
    this.#mayName = false;
    if (met.under === "input") this.refused ??= refusedMode(met.node);
    this.tools.see(met);
  }
}

/**
 * The refusal of an item that asks for a reasoning mode (`configuration_update`). A mode has prices of its own, for the
 * whole request, and no item may change them.
 */
function refusedMode({ type, reasoning }: JsonObject): Refusal | undefined {
  if (type !== "configuration_update") return undefined;
  const asked = Array.isArray(reasoning) ? reasoning : [reasoning];
  if (!asked.some(asksForMode)) return undefined;
  const detail = 'The mode has a price only as "reasoning.mode" of the request.';
  return refusal("unsupported_parameter", { param: "input[].reasoning.mode", detail });
}

function asksForMode(reasoning: unknown): boolean {
  if (tierFault({ reasoning }) ?? tierOf({ reasoning })) return true;
  // Some servers read "Mode" as "mode".
  return isObject(reasoning) && Object.keys(reasoning).some((name) => mistakenFor(name, REASONING) === "mode");
}

/** Types of `tool_choice` that do not name a hosted tool. */
const OWN_CHOICES: Readonly<Record<Protocol, RegExp>> = {
  chat: /^(?:function|custom|allowed_tools)$/,
  messages: /^(?:auto|any|none|tool)$/,
  responses: /^(?:function|custom|allowed_tools|namespace|local_shell|shell|apply_patch|tool_search)$/,
};

/**
 * Types of a change of tools and of what it says about its tool. None of them is a tool: they name one that is defined
 * elsewhere, or hold a definition, which is visited by itself.
 */
const CHANGES: ReadonlySet<unknown> = new Set([
  ...["tool_addition", "tool_removal", "tool_definition"],
  ...["tool_reference", "mcp_tool_reference", "mcp_toolset_reference"],
]);

/** Whether an object is in a member that offers a tool, or that a lenient server could read as an offer. */
function mayOffer({ node, under }: Met): boolean {
  if (under === "tools" || under === "definition") return true;
  if (under !== "tool" && under !== "tool_changes") return false;
  return isGiven(node.type) && !CHANGES.has(node.type);
}

/**
 * Whether a tool without a type only repeats what an MCP server has listed (`mcp_list_tools`, `mcp_tool_listing`). In
 * responses, a client's own tool has a type; in messages, one of the conversation is in a `definition`.
 */
function isListed(protocol: Protocol, { node, under }: Met): boolean {
  return protocol !== "chat" && under === "tools" && !isGiven(node.type);
}

/** Collects the types of the hosted tools that one body asks for, each once. */
class HostedTools {
  readonly types = new Set<string>();
  /** Tools that the answer must use, or whose position does not allow to leave them out. */
  readonly demanded = new Set<string>();
  hasOwn = false;
  /** Bytes that the model reads of the tools in addition to their definitions. */
  formBytes = 0;
  readonly #protocol: Protocol;
  readonly #json: JsonObject;
  /** The tools that the conversation's items offer at their top level; built on first use. */
  #inItems: ReadonlySet<JsonObject> | undefined;

  /** Looks at the top-level members of a body. */
  constructor(protocol: Protocol, json: JsonObject) {
    this.#protocol = protocol;
    this.#json = json;
    for (const tool of toolsIn(json.tools)) this.#see(tool, true);
    this.hasOwn ||= Array.isArray(json.functions) && json.functions.length > 0;
  }

  /** Looks at what the answer must use, after all tools have been seen: some types are run by the client or the server. */
  seeChoice(choice: unknown): void {
    if (!isObject(choice)) return;
    const type = typeof choice.type === "string" ? choice.type : "";
    if (type !== "" && (this.types.has(type) || !OWN_CHOICES[this.#protocol].test(type))) this.#demand(type);
    // In the messages protocol, `tool_choice` names a hosted tool in the same way as a client's own tool.
    if (this.#protocol === "messages" && type === "tool") {
      for (const tool of toolsIn(this.#json.tools)) {
        const hosted = tool.name === choice.name ? hostedType(this.#protocol, tool) : undefined;
        if (hosted !== undefined) this.#demand(hosted);
      }
    }
    for (const allowed of [choice.tools, member(choice.allowed_tools, "tools")]) {
      const hosted = toolsIn(allowed).map((tool) => this.#chosenType(tool));
      const onlyHosted = !hosted.includes(undefined);
      for (const one of hosted) if (one !== undefined) onlyHosted ? this.#demand(one) : this.types.add(one);
    }
  }

  /** The type of the hosted tool that an entry of a choice names; undefined for a client's own tool. */
  #chosenType(entry: JsonObject): string | undefined {
    const { type } = entry;
    return typeof type === "string" && this.types.has(type) ? type : hostedType(this.#protocol, entry);
  }

  /** Looks at one object of the conversation; some carry tools that are offered from there on. */
  see(met: Met): void {
    if (!mayOffer(met)) return;
    const { node } = met;
    const type = this.#see(node, !isListed(this.#protocol, met));
    if (type !== undefined && !this.#offeredInItems().has(node)) this.#demand(type);
  }

  #offeredInItems(): ReadonlySet<JsonObject> {
    const items = this.#protocol === "responses" && Array.isArray(this.#json.input) ? this.#json.input : [];
    this.#inItems ??= new Set(items.flatMap((item) => toolsIn(member(item, "tools"))));
    return this.#inItems;
  }

  #demand(type: string): void {
    this.types.add(type);
    this.demanded.add(type);
  }

  /**
   * @param isOffered whether the model may call it.
   * @returns the type of a hosted tool; undefined for a client's own tool.
   */
  #see(tool: JsonObject, isOffered: boolean): string | undefined {
    const type = hostedType(this.#protocol, tool);
    if (type !== undefined) this.types.add(type);
    else if (isOffered && tool.type !== "namespace") this.hasOwn = true;
    this.formBytes += formBytes(this.#protocol, tool);
    return type;
  }
}
