/**
 * Requests of real clients, as recorded through this gateway: test/golden/sessions has each step of a loop of three
 * with reasoning and parallel tools, with invented prompts; test/golden/clients has single requests.
 */
import { globSync, readFileSync } from "node:fs";
import { basename } from "node:path";
import type { AccountTag } from "../../../../src/values/key.ts";
import type { Protocol } from "../../../../src/values/protocol.ts";
import type { Json } from "./rig.ts";

/**
 * The account that the sessions were recorded with: ids that carry what they name open only for the account that they
 * were given to.
 */
export const RECORDED_BY = "recorded00" as AccountTag;

interface Session {
  readonly name: string;
  readonly protocol: Protocol;
  readonly steps: readonly Json[];
}

export const RECORDED: readonly Session[] = globSync("test/golden/sessions/*.json").map((file) => {
  const { client, version, protocol, steps } = JSON.parse(readFileSync(file, "utf8"));
  return { name: `${client} ${version}`, protocol, steps };
});

/**
 * Members that only some servers of their own protocol accept; the single bodies have them to show that they pass. Qwen
 * Code has no others.
 */
const OWN: ReadonlySet<string> = new Set([
  "logprobs",
  "top_logprobs",
  "safeguards",
  "moderation",
  "top_k",
  "repetition_penalty",
]);

export const SINGLE: readonly Session[] = globSync("test/golden/clients/!(qwen-code)*.json").map((file) => {
  const [client, protocol] = basename(file, ".json").split(".") as [string, Protocol];
  const body = JSON.parse(readFileSync(file, "utf8")) as Json;
  return {
    name: client,
    protocol,
    steps: [Object.fromEntries(Object.entries(body).filter(([member]) => !OWN.has(member)))],
  };
});
