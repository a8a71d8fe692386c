/** Everything that the envelope must know of a conversation, gathered in one walk. */

import type { Refusal } from "../../values/errors.ts";
import { isObject, type JsonObject } from "../../values/json-object.ts";
import type { Protocol } from "../../values/protocol.ts";
import { type Met, member, type Visitor, visitConversation } from "./conversation.ts";
import { MEDIA_NAMES, MediaCount } from "./media.ts";
import { refusedInConversation } from "./names.ts";

export class ConversationFacts implements Visitor {
  readonly media = new MediaCount();
  readonly tools: HostedTools;
  /** Set when a name in it could mean one thing here and another at the model's server. */
  refused: Refusal | undefined;
  /** Whether the object that is gone through has a member that may hold media. */
  #mayWeigh = false;

  constructor(protocol: Protocol, json: JsonObject) {
    this.tools = new HostedTools(protocol);
    this.tools.seeTop(json);
    visitConversation(protocol, json, this);
  }

  name(name: string, under: string): void {
    if (MEDIA_NAMES.has(name)) {
      this.#mayWeigh = true;
      return;
    }
    this.refused ??= refusedInConversation(name, under);
  }

  object(met: Met): void {
    this.media.see(met, this.#mayWeigh);
    this.#mayWeigh = false;
    this.tools.see(met);
  }
}

/*
 * Tools that the upstream would run, and bill, by itself (ARCHITECTURE.md promise 14). The types that a client runs are
 * listed; every other type is taken for one that somebody bills.
 */

/** Types of the tools that the client runs, or that cost nothing but tokens. */
const OWN_TYPES: Readonly<Record<Protocol, RegExp>> = {
  chat: /^(?:function|custom)$/,
  messages:
    /^(?:custom|(?:bash|text_editor|memory|computer|computer_toolset|browser_toolset)_\d{8}|tool_search_tool_(?:bm25|regex)(?:_\d{8})?)$/,
  responses: /^(?:function|custom|namespace|local_shell|apply_patch)$/,
};

/** What `tool_choice` may say without naming a tool of the upstream's. */
const OWN_CHOICES: Readonly<Record<Protocol, RegExp>> = {
  chat: /^(?:function|custom|allowed_tools)$/,
  messages: /^(?:auto|any|none|tool)$/,
  responses: /^(?:function|custom|allowed_tools|namespace|local_shell|shell|apply_patch|tool_search)$/,
};

/** Gathers the types of the hosted tools that one body asks for, each once. */
class HostedTools {
  readonly types = new Set<string>();
  readonly #protocol: Protocol;

  constructor(protocol: Protocol) {
    this.#protocol = protocol;
  }

  /** Looks at the members at the top of a body. */
  seeTop({ tools, tool_choice: choice }: JsonObject): void {
    this.#seeAll(tools);
    if (!isObject(choice)) return;
    if (typeof choice.type === "string" && !OWN_CHOICES[this.#protocol].test(choice.type)) this.types.add(choice.type);
    this.#seeAll(choice.tools);
    this.#seeAll(member(choice.allowed_tools, "tools"));
  }

  /** Looks at one object of the conversation: some carry tools that are offered from there on. */
  see({ node, under }: Met): void {
    if (under === "tools" || under === "definition") this.#see(node);
  }

  #seeAll(root: unknown): void {
    const pending: unknown[] = [root];
    while (pending.length > 0) {
      const next = pending.pop();
      if (Array.isArray(next)) for (let i = next.length - 1; i >= 0; i--) pending.push(next[i]);
      else if (isObject(next)) {
        this.#see(next);
        if (next.type === "namespace") pending.push(next.tools);
      }
    }
  }

  #see(tool: JsonObject): void {
    // What has no type is a function of the client's own.
    if (tool.type === undefined || tool.type === null) return;
    const type = typeof tool.type === "string" ? tool.type : "unknown";
    if (!this.#isOwn(type, tool)) this.types.add(type);
  }

  #isOwn(type: string, tool: JsonObject): boolean {
    if (OWN_TYPES[this.#protocol].test(type)) return true;
    if (this.#protocol !== "responses") return false;
    if (type === "tool_search") return tool.execution === "client";
    // A container is the upstream's; a local environment, or none, is the client's own shell.
    if (type !== "shell") return false;
    return tool.environment === undefined || tool.environment === null || member(tool.environment, "type") === "local";
  }
}
