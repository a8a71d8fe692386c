/**
 * Calls and their results (docs/translation-rules.md rule 12). The pairing is checked when a request is decoded, so
 * that errors are in the client's terms. For protocols that want results directly after their calls, they are
 * reordered.
 */
import { shownValue } from "../../values/words/shown.ts";
import type { AssistantTurn, ToolCallPart, ToolResult, ToolTurn, Turn } from "../hub.ts";
import { refuse } from "./read.ts";

/** The calls of a turn, in order. */
export function callsOf(turn: AssistantTurn): readonly ToolCallPart[] {
  return turn.parts.filter((part) => part.type === "tool-call");
}

/**
 * Refuses orphan results, duplicate results and unanswered calls.
 * @param adjacent whether the client's protocol wants all results before the next user or assistant turn. Chat and
 * messages do; system text in between is moved later.
 */
export function provePairs(turns: readonly Turn[], adjacent: boolean): void {
  const open = new Map<string, string>();
  const answered = new Set<string>();
  for (const turn of turns) {
    if (adjacent && (turn.role === "user" || turn.role === "assistant")) proveAnswered(open);
    if (turn.role === "assistant") openCalls(turn, open, answered);
    if (turn.role === "tool") closeCalls(turn, open, answered);
  }
  proveAnswered(open);
}

function openCalls(turn: AssistantTurn, open: Map<string, string>, answered: Set<string>): void {
  for (const call of callsOf(turn)) {
    if (open.has(call.id)) refuse("wrong_type", call.param, `Two tool calls have the same id, ${shownValue(call.id)}.`);
    open.set(call.id, call.param);
    answered.delete(call.id);
  }
}

function closeCalls(turn: ToolTurn, open: Map<string, string>, answered: Set<string>): void {
  for (const result of turn.results) {
    if (answered.has(result.callId))
      refuse("wrong_type", result.param, `The tool call ${shownValue(result.callId)} already has a result.`);
    if (!open.delete(result.callId)) {
      refuse("wrong_type", result.param, `No earlier tool call has the id ${shownValue(result.callId)}.`);
    }
    answered.add(result.callId);
  }
}

function proveAnswered(open: ReadonlyMap<string, string>): void {
  for (const [id, param] of open) {
    refuse("wrong_type", param, `The tool call ${shownValue(id)} has no result after it.`);
  }
}

/**
 * Moves each result directly after the turn that made the call (rule 13); what stood between them follows. The pairing
 * must be checked.
 */
export function settleResults(turns: readonly Turn[]): readonly Turn[] {
  const waiting = queueResults(turns);
  const settled: Turn[] = [];
  for (const turn of turns) {
    if (turn.role === "tool") continue;
    settled.push(turn);
    if (turn.role !== "assistant") continue;
    const results = callsOf(turn)
      .map((call) => waiting.get(call.id)?.shift())
      .filter((result) => result !== undefined)
      .sort((one, other) => one.position - other.position);
    const first = results[0];
    if (first) settled.push({ role: "tool", results: results.map(({ result }) => result), param: first.result.param });
  }
  return settled;
}

interface QueuedResult {
  readonly position: number;
  readonly result: ToolResult;
}

/** Results by call id, each with its position among all results; an id may be used again in a later turn. */
function queueResults(turns: readonly Turn[]): Map<string, QueuedResult[]> {
  const waiting = new Map<string, QueuedResult[]>();
  let position = 0;
  for (const turn of turns) {
    if (turn.role !== "tool") continue;
    for (const result of turn.results) {
      const queue = waiting.get(result.callId) ?? [];
      queue.push({ position: position++, result });
      waiting.set(result.callId, queue);
    }
  }
  return waiting;
}
