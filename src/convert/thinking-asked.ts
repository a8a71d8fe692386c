/**
 * Whether a request asks its model to reason, or to hide its reasoning, in the form of any of the three protocols and
 * of common servers.
 */
import { type JsonObject, objectOf } from "../values/json-object.ts";

/** Values of efforts and thinking types that mean none. */
const OFF: ReadonlySet<unknown> = new Set(["none", "off", "disabled", "", undefined, null, false, 0]);

/**
 * True also if reasoning is only hidden. Then even a model that usually shows its reasoning produces it unseen, and its
 * other replies say nothing about this one.
 * @param json a client's body, of any protocol.
 */
export function asksToThink(json: Readonly<JsonObject>): boolean {
  const reasoning = objectOf(json.reasoning);
  const thinking = objectOf(json.thinking);
  const template = objectOf(json.chat_template_kwargs);
  const settings = [
    json.reasoning_effort,
    reasoning?.effort,
    reasoning?.max_tokens,
    reasoning?.enabled,
    reasoning?.exclude,
    thinking?.type,
    thinking?.budget_tokens,
    thinking?.reasoning_effort,
    objectOf(json.output_config)?.effort,
    json.enable_thinking,
    json.thinking_budget,
    json.thinking_token_budget,
    json.thinking_budget_tokens,
    json.reasoning_budget,
    json.prompt_mode,
    template?.enable_thinking,
    template?.thinking,
    template?.thinking_budget,
    template?.thinking_mode,
    template?.reasoning_effort,
  ];
  return settings.some((value) => !OFF.has(value)) || hidesReasoning(json);
}

/** On request, Groq and OpenRouter leave the reasoning out, and SGLang holds it back. */
function hidesReasoning({ include_reasoning, reasoning_format, stream_reasoning }: Readonly<JsonObject>): boolean {
  return include_reasoning === false || reasoning_format === "hidden" || stream_reasoning === false;
}
