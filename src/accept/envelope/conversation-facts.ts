/** Everything that the envelope must know of a conversation, gathered in one walk. */
import type { Refusal } from "../../values/errors.ts";
import type { JsonObject } from "../../values/json-object.ts";
import type { Protocol } from "../../values/protocol.ts";
import { type Met, type Visitor, visitConversation } from "./conversation.ts";
import { HostedTools } from "./hosted-tools.ts";
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
