/** Thinking that the client switches off, and models that have no such switch (capability `thinking_off`). */
import { type Refusal, refusal } from "../../values/errors.ts";
import type { JsonObject } from "../../values/json-object.ts";
import { isObject } from "../../values/json-object.ts";
import type { Protocol } from "../../values/protocol.ts";
import type { RouteFacts } from "../exchange.ts";

/**
 * The member with which a request switches thinking off; undefined when it does not.
 * Chat servers know several: the protocol's own `reasoning_effort` and what vendors have added beside it.
 */
export function offMember(client: Protocol, json: JsonObject): string | undefined {
  return SWITCHES[client](json).find(([, off]) => off)?.[0];
}

type Switches = readonly (readonly [member: string, off: boolean])[];

const SWITCHES: Readonly<Record<Protocol, (json: JsonObject) => Switches>> = {
  chat(json) {
    const template = membersOf(json.chat_template_kwargs);
    const reasoning = membersOf(json.reasoning);
    return [
      ["enable_thinking", json.enable_thinking === false],
      ["chat_template_kwargs", template.enable_thinking === false || template.thinking === false],
      ["thinking", membersOf(json.thinking).type === "disabled"],
      ["reasoning", reasoning.effort === "none" || reasoning.enabled === false],
      ["reasoning_effort", json.reasoning_effort === "none"],
    ];
  },
  messages: (json) => [
    ["thinking", ["disabled", "between_tools"].includes(String(membersOf(json.thinking).type))],
    ["output_config.effort", membersOf(json.output_config).effort === "none"],
  ],
  responses: (json) => [["reasoning.effort", membersOf(json.reasoning).effort === "none"]],
};

function membersOf(value: unknown): JsonObject {
  return isObject(value) ? value : {};
}

/**
 * The refusal of a switch that this route's model does not have, where the operator wants it refused.
 * @param member what `offMember` found, or what the hub's wish names.
 */
export function refusedOff(member: string | undefined, route: RouteFacts): Refusal | undefined {
  if (member === undefined || route.capabilities.thinkingOff === "ignore" || hasSwitch(route)) return undefined;
  return refusal("unsupported_parameter", { param: member, detail: "Thinking cannot be switched off for this model." });
}

/**
 * docs/translation-rules.md rule 27: messages models differ in `thinking`; the others have the effort `none` or no
 * switch.
 */
function hasSwitch({ protocol, capabilities }: RouteFacts): boolean {
  return protocol === "messages" ? capabilities.thinking !== "always" : capabilities.efforts.includes("none");
}
