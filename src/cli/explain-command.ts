/** `tollgate explain`: what would happen to a request, without sending it. */

import type { JsonObject } from "../values/json-object.ts";
import { PROTOCOL_NAMES } from "../values/protocol.ts";
import type { AdminClient } from "./admin-client.ts";
import type { CommandResult } from "./admin-commands.ts";
import { type Ask, type Command, Option } from "./command-line.ts";
import { CliFailure } from "./failure.ts";
import { type Column, cell, facts, table } from "./output/table.ts";
import { asTyped } from "./typed-names.ts";

interface ExplainOptions {
  readonly keyId: string;
  readonly model: string;
  readonly protocol: string;
  readonly maxTokens?: string;
  readonly inputBytes?: string;
}

const ANSWER_FACTS = {
  answer: "Answer",
  message: "Message",
  remedy: "Remedy",
  worst: "Worst case",
  clamped: "Lowered",
};

const STEP_COLUMNS: readonly Column[] = [
  { title: "STEP", member: "step" },
  { title: "RESULT", member: "result" },
  { title: "EXPLANATION", member: "words" },
];

const ROUTE_COLUMNS: readonly Column[] = [
  { title: "UPSTREAM", member: "upstream" },
  { title: "HEALTH", member: "health" },
  { title: "PROTOCOL", member: "protocol" },
  { title: "CAN SERVE", member: "carries" },
  { title: "TRANSLATION", member: "translation" },
  { title: "WHY NOT", member: "why" },
  { title: "RULES", member: "kinds" },
];

/** Options by the API's member names. */
const OPTIONS = { key_id: "--key-id", max_tokens: "--max-tokens", input_bytes: "--input-bytes" };

/** @throws CliFailure 2 for an invalid number */
async function explainRequest(admin: AdminClient, options: ExplainOptions): Promise<CommandResult> {
  const { body } = await asTyped(admin, OPTIONS).call("POST", "/explain", {
    key_id: options.keyId,
    model: options.model,
    protocol: options.protocol,
    ...whole("max_tokens", "--max-tokens", options.maxTokens),
    ...whole("input_bytes", "--input-bytes", options.inputBytes),
  });
  const steps = list(body.steps).map((step) => ({ ...step, result: RESULTS[String(step.ok)] ?? "-" }));
  const routes = list(body.routes).map((route) => ({
    ...route,
    carries: route.carries === true ? "yes" : "no",
    why: (route.refusal as JsonObject | null)?.words,
    kinds: list(route.rules)
      .map(({ kind }) => cell(kind))
      .join(" "),
  }));
  const ways = routes.length === 0 ? "" : `\n${table(ROUTE_COLUMNS, routes)}`;
  return { json: body, text: `${facts(ANSWER_FACTS, answerOf(body))}\n${table(STEP_COLUMNS, steps)}${ways}` };
}

const RESULTS: Readonly<Record<string, string>> = { true: "yes", false: "NO" };

function answerOf(body: JsonObject): JsonObject {
  const { status, cause, message, remedy } = (body.expected ?? {}) as JsonObject;
  const price = body.price as JsonObject | null;
  const tokens = `${cell(price?.input_tokens_max)} input and ${cell(price?.output_tokens_max)} output tokens`;
  const worst = price ? `${cell(price.worst_usd)} USD for ${tokens}; least ${cell(price.least_usd)} USD` : undefined;
  return {
    answer: cause === null ? status : `${cell(status)} ${cell(cause)}`,
    message,
    remedy,
    worst,
    clamped: body.clamped,
  };
}

function list(value: unknown): readonly JsonObject[] {
  return Array.isArray(value) ? (value as readonly JsonObject[]) : [];
}

function whole(member: string, option: string, typed: string | undefined): Record<string, number> {
  if (typed === undefined) return {};
  if (!/^(0|[1-9][0-9]{0,14})$/.test(typed)) throw new CliFailure(2, `${option} must be a whole number.`);
  return { [member]: Number(typed) };
}

/** Defines `tollgate explain`. */
export function addExplainCommand(program: Command, ask: Ask): void {
  program
    .command("explain")
    .description("show what would happen to a request: path, answer, price, routes; nothing is sent or charged")
    .requiredOption("--key-id <id>", "id of the key that would send it")
    .requiredOption("--model <model>", "model name as the client sends it")
    .addOption(
      new Option("--protocol <protocol>", "protocol of the request").choices(PROTOCOL_NAMES).makeOptionMandatory(),
    )
    .option("--max-tokens <count>", "the client's output limit; default: the model's default")
    .option("--input-bytes <count>", "size of the body in bytes; default: a short one")
    .action((options: ExplainOptions) => ask((c) => explainRequest(c, options)));
}
