/**
 * Switches thinking off for one request to a messages server that would refuse the request otherwise
 * (docs/translation-rules.md rules 27 and 38).
 */
import { arrayOf, type JsonObject, objectOf, textOf } from "../../values/json-object.ts";
import { endsInBareCalls } from "../messages/request/turns.ts";

/** Edits of top-level members: raw JSON by the name of each member to set, and the members to remove. */
interface MemberEdits {
  readonly set: Readonly<Record<string, string>>;
  readonly remove: readonly string[];
}

/**
 * The edits that switch thinking off. They also remove edits of `context_management` that clear thinking, which are
 * allowed only with thinking.
 */
export function thinkingOff(json: Readonly<JsonObject>): MemberEdits {
  const thinking = '{"type":"disabled"}';
  const managed = objectOf(json.context_management);
  const edits = arrayOf(managed?.edits);
  const left = edits.filter((edit) => !isClearing(edit));
  if (left.length === edits.length) return { set: { thinking }, remove: [] };
  if (left.length === 0) return { set: { thinking }, remove: ["context_management"] };
  return { set: { thinking, context_management: JSON.stringify({ ...managed, edits: left }) }, remove: [] };
}

function isClearing(edit: unknown): boolean {
  return textOf(objectOf(edit)?.type)?.startsWith("clear_thinking_") === true;
}

/** Whether the request has a thinking budget, which requires the thinking of an unfinished tool loop. */
export function hasThinkingBudget(json: Readonly<JsonObject>): boolean {
  return objectOf(json.thinking)?.type === "enabled";
}

/** A message as a client wrote it: its role and its blocks. */
interface WrittenTurn {
  readonly role: unknown;
  readonly blocks: readonly (JsonObject | undefined)[];
}

/** The messages of a request; a text counts as one block. */
export function turnsOf(json: Readonly<JsonObject>): readonly WrittenTurn[] {
  return arrayOf(json.messages).map((message) => {
    const { role, content } = objectOf(message) ?? {};
    const blocks = typeof content === "string" ? [{ type: "text" }] : arrayOf(content).map(objectOf);
    return { role, blocks };
  });
}

/** Whether a conversation is in the middle of a tool loop without thinking at its beginning. */
export function isBareLoop(turns: readonly WrittenTurn[]): boolean {
  return endsInBareCalls(turns.map(({ role, blocks }) => ({ role, content: blocks.map((block) => block ?? {}) })));
}

export function isThinking(block: JsonObject | undefined): boolean {
  return block?.type === "thinking" || block?.type === "redacted_thinking";
}

/** The turns after some have lost their thinking. Turns that contained nothing else are removed. */
export function withoutThinking(
  turns: readonly WrittenTurn[],
  loses: (index: number) => boolean,
): readonly WrittenTurn[] {
  return turns.flatMap(({ role, blocks }, index) => {
    if (!loses(index)) return [{ role, blocks }];
    const left = blocks.filter((block) => !isThinking(block));
    return left.length === 0 && blocks.length > 0 ? [] : [{ role, blocks: left }];
  });
}
