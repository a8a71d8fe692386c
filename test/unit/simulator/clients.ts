/** The official SDKs as clients of a simulator. Their strict accumulators check its streams. */

import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import { type Behavior, type Simulator, type SimulatorOptions, startSimulator } from "../../../src/simulator/server.ts";

/** Runs `task` with a new simulator, and closes it afterwards even if the task fails. */
export async function withSimulator(
  task: (simulator: Simulator) => Promise<void>,
  options: SimulatorOptions = {},
): Promise<void> {
  const simulator = await startSimulator(options);
  try {
    await task(simulator);
  } finally {
    await simulator.close();
  }
}

export function openaiOf(simulator: Simulator): OpenAI {
  return new OpenAI({ baseURL: simulator.url, apiKey: "sk-test", maxRetries: 0 });
}

export function anthropicOf(simulator: Simulator): Anthropic {
  return new Anthropic({ baseURL: simulator.url.replace(/\/v1$/, ""), apiKey: "sk-test", maxRetries: 0 });
}

export type ProtocolName = "chat" | "messages" | "responses";

export const PROTOCOL_NAMES: readonly ProtocolName[] = ["chat", "messages", "responses"];

const PATHS = { chat: "/chat/completions", messages: "/messages", responses: "/responses" } as const;

/** A small valid request body. */
export function requestBody(protocol: ProtocolName, fields: object = {}): object {
  const turn = [{ role: "user", content: "hello" }];
  if (protocol === "chat") return { model: "m", messages: turn, ...fields };
  if (protocol === "messages") return { model: "m", max_tokens: 10_000, messages: turn, ...fields };
  return { model: "m", input: "hello", ...fields };
}

/** Posts a small request with fetch. */
export function post(
  simulator: Simulator,
  protocol: ProtocolName,
  fields: object = {},
  headers: Record<string, string> = {},
): Promise<Response> {
  return fetch(simulator.url + PATHS[protocol], {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify(requestBody(protocol, fields)),
  });
}

/** Posts a streamed request with a programmed behavior, and reads the whole reply as text. */
export async function streamText(simulator: Simulator, protocol: ProtocolName, behavior: Behavior): Promise<string> {
  simulator.program(behavior);
  return (await post(simulator, protocol, { stream: true })).text();
}
