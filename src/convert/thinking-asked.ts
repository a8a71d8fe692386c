/** Whether a request asks its model to reason, in the words of any of the three protocols and of their common servers. */
import { type JsonObject, objectOf } from "./json-object.ts";

/** Efforts and kinds of thinking that mean none. */
const OFF: ReadonlySet<unknown> = new Set(["none", "minimal", "off", "disabled", "", undefined, null, false]);

/** @param json a client's body, whatever its protocol. */
export function asksToThink(json: Readonly<JsonObject>): boolean {
  const template = objectOf(json.chat_template_kwargs);
  const said = [
    json.reasoning_effort,
    objectOf(json.reasoning)?.effort,
    objectOf(json.reasoning)?.max_tokens,
    objectOf(json.reasoning)?.enabled,
    objectOf(json.thinking)?.type,
    objectOf(json.output_config)?.effort,
    json.enable_thinking,
    template?.enable_thinking,
    template?.thinking,
  ];
  return said.some((value) => !OFF.has(value));
}
