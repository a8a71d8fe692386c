/**
 * Structured output for an upstream that has no member for it: a line of system text (docs/translation-rules.md rule
 * 26).
 */

import type { JsonObject } from "../../values/json-object.ts";
import type { Protocol } from "../../values/protocol.ts";
import type { HubRequest, OutputFormat } from "../hub.ts";
import type { Losses } from "./losses.ts";

/** The member in which each client asked for a format. */
const FORMAT_PARAM: Readonly<Record<Protocol, string>> = {
  chat: "response_format",
  messages: "output_config.format",
  responses: "text.format",
};

/** The path below which a client's format of the kind `json_schema` has its members. */
export function schemaParam(client: Protocol): string {
  return client === "chat" ? `${FORMAT_PARAM.chat}.json_schema` : FORMAT_PARAM[client];
}

/** The name of a schema if the client's protocol has none. */
const NAMELESS = "response";

export interface FormatPlan {
  /** The format to be written natively. */
  readonly native: OutputFormat | undefined;
  /** The line to be added to the system text instead. */
  readonly line: string | undefined;
}

/**
 * Uses the upstream's member if it has one, else a line of system text, which is a declared loss.
 * @param carries whether the upstream has a member for this kind of format.
 */
export function planFormat(hub: HubRequest, carries: (format: OutputFormat) => boolean, losses: Losses): FormatPlan {
  const { format } = hub;
  if (format === undefined || carries(format)) return { native: format, line: undefined };
  losses.drop(FORMAT_PARAM[hub.client]);
  return { native: undefined, line: approximation(format) };
}

function approximation(format: OutputFormat): string {
  if (format.type === "json_object") return "Respond only with one valid JSON object.";
  return `Respond only with one valid JSON object that follows this JSON Schema:\n${JSON.stringify(format.schema)}`;
}

/** The members of a schema format, which chat nests and responses does not. */
export function schemaMembers(format: Extract<OutputFormat, { type: "json_schema" }>): JsonObject {
  const { name, description, schema, strict } = format;
  return { name: name ?? NAMELESS, description, schema, strict };
}
