/** Answers one model request: finds the behavior that applies, then sends headers and body step by step. */

import type { ServerResponse } from "node:http";
import type { JsonObject } from "../values/json-object.ts";
import { PROTOCOLS, type Protocol } from "../values/protocol.ts";
import {
  type Behavior,
  DirectiveError,
  type Fault,
  overlay,
  parseBehavior,
  parseDirective,
  type ReplyDelays,
} from "./behavior.ts";
import { chatBody, chatStream } from "./chat.ts";
import { type ReceivedRequest, readConversation } from "./conversation.ts";
import { type ErrorWords, errorBody } from "./errors.ts";
import { HUGE_EVENT_BYTES_MAX, recut, streamSteps, type WriteStep, wholeSteps } from "./faults.ts";
import type { StreamShape } from "./frame.ts";
import { idFrom } from "./ids.ts";
import type { KeptResponses } from "./kept.ts";
import { messagesBody, messagesStream } from "./messages.ts";
import type { ProgrammedBehavior } from "./programs.ts";
import { buildReply, type SimulatedReply } from "./reply.ts";
import { responsesBody, responsesStream } from "./responses.ts";
import { vendorHeaders } from "./side.ts";
import { strictProblem } from "./strict.ts";
import { type Link, pause, untilGone, writeSteps } from "./writer.ts";

/** What an answer needs to know of its request. */
interface SimulatedRequest {
  /** The responses that a stateful server keeps; undefined: none. */
  readonly kept: KeptResponses | undefined;
  readonly protocol: Protocol;
  readonly json: unknown;
  readonly bodyBytes: number;
  /** Value of the `x-simulate` header. */
  readonly header: string | undefined;
  readonly seed: string;
  readonly pace: ReplyDelays;
  readonly chosen: ProgrammedBehavior;
  /** Whether to refuse what the vendors refuse, see `strict.ts`. */
  readonly isStrict: boolean;
  /** Counts how often this body met a fault with `times`, including this time. */
  countFault(): number;
}

const WRITERS: Readonly<
  Record<Protocol, { body(reply: SimulatedReply): object; stream(reply: SimulatedReply): StreamShape }>
> = {
  chat: { body: chatBody, stream: chatStream },
  messages: { body: messagesBody, stream: messagesStream },
  responses: { body: responsesBody, stream: responsesStream },
};

const HTML = "<!doctype html><title>Simulation</title><h1>502 Bad Gateway</h1><p>A simulated proxy's page.</p>";

/** Answers a request on one of the three model paths. */
export async function answerModel(link: Link, question: SimulatedRequest): Promise<void> {
  const problem = requestProblem(question.protocol, question.json);
  if (problem) return sendError(link.res, question, 400, problem);
  const asked = question.json as JsonObject;
  const filled = question.kept?.filled(asked) ?? { request: asked };
  if ("problem" in filled) {
    const { problem: message, param } = filled;
    return sendError(link.res, question, 400, { message, param, code: "previous_response_not_found" });
  }
  const { request } = filled;
  const strict = question.isStrict ? strictProblem(question.protocol, request) : undefined;
  if (strict) return sendError(link.res, question, 400, strict);
  const conversation = readConversation(question.protocol, request);
  let behavior: Behavior;
  try {
    behavior = behaviorFor(question, conversation);
  } catch (error) {
    if (!(error instanceof DirectiveError)) throw error;
    return sendError(link.res, question, 400, { message: error.message });
  }
  const { fault = {} } = behavior;
  const pace = { ...question.pace, ...behavior.pace };
  if (fault.resetBeforeHeaders) return link.reset();
  if (fault.stallBeforeHeaders) return untilGone(link.gone);
  await pause(link, pace.headersDelayMs + (fault.delayHeadersMs ?? 0));
  if (link.gone.aborted) return;
  if (fault.rawResponse !== undefined) return sendRaw(link, fault.rawResponse);
  sendInformational(link.res, fault.informational ?? []);
  if (isSimpleFault(fault)) return sendSimpleFault(link.res, question, fault);
  const { protocol, seed } = question;
  const bodyBytes = request === asked ? question.bodyBytes : JSON.stringify(request).length;
  const reply = buildReply({ protocol, behavior, conversation, request, seed, bodyBytes });
  if (asked.store !== false) question.kept?.keep(request, responsesBody(reply) as JsonObject);
  return sendReply(link, question, reply, pace);
}

/** Sends an error with this status in the protocol's form. */
export function sendError(
  res: ServerResponse,
  { protocol, seed }: Pick<SimulatedRequest, "protocol" | "seed">,
  status: number,
  words: ErrorWords,
): void {
  const body = errorBody(protocol, status, words, idFrom(seed, "req_"));
  const base = { ...vendorHeaders(protocol === "messages", seed), "content-type": "application/json" };
  res.writeHead(status, base).end(JSON.stringify(body));
}

/** The first problem that the real service would refuse, or undefined. */
function requestProblem(protocol: Protocol, json: unknown): ErrorWords | undefined {
  if (typeof json !== "object" || json === null || Array.isArray(json)) {
    return { message: "We could not parse the JSON body of your request." };
  }
  const { requiredFields, limitFields } = PROTOCOLS[protocol];
  for (const { name, types } of requiredFields) {
    const value = (json as JsonObject)[name];
    const type = Array.isArray(value) ? "array" : typeof value;
    if (types.some((allowed) => allowed === type)) continue;
    const reason = value === undefined ? "Field required" : `Expected ${types.join(" or ")}`;
    return { message: `${name}: ${reason}`, param: name };
  }
  const least = protocol === "responses" ? 16 : protocol === "chat" ? 1 : 0;
  const tooSmall = limitFields.find((name) => {
    const value = (json as JsonObject)[name];
    return typeof value === "number" && value < least;
  });
  return tooSmall ? { message: `${tooSmall}: must be at least ${least}`, param: tooSmall } : undefined;
}

function behaviorFor(question: SimulatedRequest, conversation: ReceivedRequest): Behavior {
  const { chosen, header } = question;
  const inText = conversation.endsWithToolResult ? undefined : parseDirective(conversation.lastUserText);
  const inHeader = header === undefined ? undefined : parseBehavior(header);
  const behavior = overlay(overlay(overlay(chosen.always ?? {}, inText), inHeader), chosen.once);
  const { fault, ...rest } = behavior;
  if (fault?.times === undefined || question.countFault() <= fault.times) return behavior;
  return rest;
}

/** Sends bytes instead of an HTTP answer, then ends the connection. */
function sendRaw(link: Link, raw: string | Uint8Array): void {
  link.res.socket?.end(typeof raw === "string" ? Buffer.from(raw, "base64") : raw);
}

function sendInformational(res: ServerResponse, statuses: readonly number[]): void {
  for (const status of statuses) {
    if (status === 100) res.writeContinue();
    else if (status === 102) res.writeProcessing();
    else if (status === 103) res.writeEarlyHints({ link: "</simulation.css>; rel=preload" });
  }
}

function isSimpleFault(fault: Fault): boolean {
  return fault.status !== undefined || fault.html === true || fault.jsonErrorIn200 === true;
}

function sendSimpleFault(res: ServerResponse, question: SimulatedRequest, fault: Fault): void {
  const head = {
    ...vendorHeaders(question.protocol === "messages", question.seed),
    "content-type": fault.html ? "text/html; charset=utf-8" : "application/json",
    ...(fault.retryAfter === undefined ? {} : { "retry-after": String(fault.retryAfter) }),
    ...fault.headers,
    ...fault.extraHeaders,
  };
  res.writeHead(fault.status ?? 200, head).end(simpleFaultBody(question, fault));
}

function simpleFaultBody({ protocol, seed }: SimulatedRequest, fault: Fault): string {
  if (typeof fault.body === "string") return fault.body;
  if (fault.body !== undefined) return JSON.stringify(fault.body);
  if (fault.html) return HTML;
  const { status, type, code, message = `Simulated error ${status ?? "in a 200"}.` } = fault;
  const words = { message, ...(type === undefined ? {} : { type }), ...(code === undefined ? {} : { code }) };
  return JSON.stringify(errorBody(protocol, status ?? 500, words, idFrom(seed, "req_")));
}

async function sendReply(
  link: Link,
  question: SimulatedRequest,
  reply: SimulatedReply,
  pace: ReplyDelays,
): Promise<void> {
  const { behavior, conversation } = reply;
  const { fault = {}, chunkBytes } = behavior;
  const writer = WRITERS[question.protocol];
  const planned = conversation.stream
    ? streamSteps(writer.stream(reply), behavior)
    : wholeSteps(wholeBody(writer.body(reply), behavior), fault);
  const steps = chunkBytes ? recut(planned, chunkBytes) : planned;
  const headers = replyHeaders(question, conversation.stream, fault);
  if (!conversation.stream && !fault.compress) headers["content-length"] = String(lengthOf(planned));
  link.res.writeHead(200, headers);
  link.res.flushHeaders();
  const compress = fault.compress ? { compress: fault.compress } : {};
  await writeSteps(link, steps, { pace, ...compress, apart: chunkBytes !== undefined });
}

/** The length of all steps. A stall or a reset promises one more byte, which is never sent. */
function lengthOf(steps: readonly WriteStep[]): number {
  return steps.reduce((sum, step) => sum + (step.kind === "bytes" ? step.bytes.length : 1), 0);
}

function wholeBody(body: object, behavior: Behavior): Buffer {
  const { fault = {} } = behavior;
  const padding = fault.hugeEvent ? { padding: "x".repeat(Math.min(fault.hugeEvent, HUGE_EVENT_BYTES_MAX)) } : {};
  const dictated = behavior.body ?? { ...body, ...padding };
  return Buffer.from(typeof dictated === "string" ? dictated : JSON.stringify(dictated));
}

function replyHeaders(question: SimulatedRequest, isStream: boolean, fault: Fault): Record<string, string | string[]> {
  const right = isStream ? "text/event-stream; charset=utf-8" : "application/json";
  const wrong = fault.wrongContentType === true ? "application/octet-stream" : fault.wrongContentType || right;
  return {
    ...vendorHeaders(question.protocol === "messages", question.seed),
    "content-type": wrong,
    ...(isStream ? { "cache-control": "no-cache", "x-accel-buffering": "no" } : {}),
    ...(fault.compress ? { "content-encoding": fault.compress } : {}),
    ...fault.extraHeaders,
  };
}
