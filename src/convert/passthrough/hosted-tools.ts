/**
 * Hosted tools that are offered but have no price, on a route of the client's own protocol. They are left out and
 * named, as a translation does with tools that its target does not run (docs/translation-rules.md rule 33). Admission
 * has already refused those that the answer must use.
 */
import { type Refusal, refusal } from "../../values/errors.ts";
import { arrayOf, isObject, objectOf } from "../../values/json-object.ts";
import { HOSTED_TOOL_REMEDY, withoutHosted } from "../../values/members/hosted-tools.ts";
import { isJsonFault, scanJson, spliceJson, spliceNested } from "../../wire/json.ts";
import type { ClientRequest, Permitted } from "../exchange.ts";
import { familyOf } from "../rules/tool-offer.ts";
import { editElements } from "./elements.ts";
import { compactionWith, messageLeft, type RefersTo, referringTo, writtenMessage } from "./tool-references.ts";

/** A request after parts of it were left out. */
export interface Left {
  /** The original request if nothing was left out. */
  readonly request: ClientRequest;
  /** What was left out, as `x-tollgate-translation` names it. */
  readonly dropped: readonly string[];
}

/** The request without hosted tools that have no price; a refusal if the request is strict. */
export function withoutUnpriced(
  request: ClientRequest,
  { unpricedTools = [], strict }: Pick<Permitted, "unpricedTools" | "strict">,
): Left | Refusal {
  if (unpricedTools.length === 0) return { request, dropped: [] };
  if (strict) {
    const detail = `The hosted tool "${unpricedTools[0]}" is not offered for this model, and nothing may be left out.`;
    return refusal("unsupported_parameter", { param: "tools", detail });
  }
  const types: ReadonlySet<string> = new Set(unpricedTools);
  const refersTo = referringTo(request.json.tools, types);
  const compaction = request.protocol === "messages" ? compactionWith(request.json.messages, refersTo) : undefined;
  if (compaction !== undefined) return keptCompaction(compaction);
  const edits = editsOf(request, types, refersTo);
  const emptied = ["messages", "input"].find((name) => arrayOf(edits.get(name)?.value).length === 0 && edits.has(name));
  if (emptied !== undefined) return nothingLeft(emptied, unpricedTools[0]);
  const dropped = [...new Set(unpricedTools.map((type) => `tools.${familyOf(type)}`))];
  return { request: edited(request, edits), dropped };
}

/** The refusal of a compaction that refers to a tool that is left out. */
function keptCompaction(param: string): Refusal {
  const detail =
    "It refers to a hosted tool that is not offered for this model, and nothing can be left out of a compaction block.";
  const remedy = "Ask for a model that offers the tool, or send the messages that the block has replaced.";
  return refusal("unsupported_parameter", { param, detail, remedy });
}

/** The refusal of a conversation that only offers a hosted tool, or says something about one: a server refuses an empty one. */
function nothingLeft(param: string, type: string | undefined): Refusal {
  const detail = `The hosted tool "${type}" is not offered for this model, and nothing else is in the conversation.`;
  return refusal("unsupported_parameter", { param, detail, remedy: HOSTED_TOOL_REMEDY });
}

/** A changed member: its bytes and its parsed value. */
interface MemberEdit {
  readonly raw: string | Uint8Array;
  readonly value: unknown;
}

/** Edits by member name; undefined removes the member. */
type Edits = Map<string, MemberEdit | undefined>;

function editsOf({ protocol, json, body }: ClientRequest, types: ReadonlySet<string>, refersTo: RefersTo): Edits {
  const edits: Edits = new Map();
  const leave = (tools: unknown) => withoutHosted(protocol, tools, types);
  const edit = (
    name: string,
    list: readonly unknown[],
    change: (element: unknown) => unknown,
    written: (bytes: Uint8Array, before: unknown, left: unknown) => Uint8Array,
  ) => {
    const left = list.map(change);
    if (left.every((element, index) => element === list[index])) return;
    const value = left.filter((element) => element !== undefined);
    const raw = editElements(body, [name], (bytes, index) => {
      const element = left[index];
      if (element === list[index]) return bytes;
      return element === undefined ? undefined : written(bytes, list[index], element);
    });
    edits.set(name, value.length === 0 && name === "tools" ? undefined : { raw, value });
  };
  const withTools = (bytes: Uint8Array, before: unknown, left: unknown) => withoutTools(bytes, before, left, leave);
  if (Array.isArray(json.tools)) edit("tools", json.tools, leave, withTools);
  else if (leave(json.tools) !== json.tools) edits.set("tools", undefined);
  if (protocol === "responses" && Array.isArray(json.input)) {
    edit("input", json.input, (item) => itemLeft(item, leave), withTools);
  }
  if (protocol === "messages" && Array.isArray(json.messages)) {
    edit(
      "messages",
      json.messages,
      (message) => messageLeft(message, refersTo),
      (bytes, before, left) => writtenMessage(bytes, before, left, refersTo),
    );
  }
  const choice = choiceLeft(json.tool_choice, (tools) => withoutNamed(leave(tools), types));
  if (choice !== json.tool_choice) edits.set("tool_choice", { raw: JSON.stringify(choice), value: choice });
  return edits;
}

/** The bytes of an element that lost tools. The other tools keep their bytes, so no number in a schema changes. */
function withoutTools(
  bytes: Uint8Array,
  before: unknown,
  left: unknown,
  leave: (tools: unknown) => unknown,
): Uint8Array {
  const tools = objectOf(before)?.tools;
  // A list within the list, or one tool instead of a list: no client writes these, and servers refuse them.
  if (!Array.isArray(tools) || !Array.isArray(objectOf(left)?.tools)) return Buffer.from(JSON.stringify(left));
  const list = editElements(bytes, ["tools"], (one, index) => {
    const kept = leave(tools[index]);
    if (kept === tools[index]) return one;
    return kept === undefined ? undefined : Buffer.from(JSON.stringify(kept));
  });
  return spliceNested(bytes, ["tools"], list.toString());
}

function itemLeft(item: unknown, leave: (tools: unknown) => unknown): unknown {
  if (!isObject(item) || item.tools === undefined) return item;
  const tools = leave(item.tools);
  if (tools === item.tools) return item;
  const isEmpty = tools === undefined || (Array.isArray(tools) && tools.length === 0);
  // An item that only offers tools is removed when it has none left; an item that answers a call stays.
  return isEmpty && item.type === "additional_tools" ? undefined : { ...item, tools: tools ?? [] };
}

/** A list of a tool choice without entries of these types. An entry has no more than the type of a tool. */
function withoutNamed(tools: unknown, types: ReadonlySet<string>): unknown {
  const isNamed = (tool: unknown) => types.has(String(objectOf(tool)?.type));
  return arrayOf(tools).some(isNamed) ? arrayOf(tools).filter((tool) => !isNamed(tool)) : tools;
}

/** The tool choice without tools that are no longer offered. */
function choiceLeft(choice: unknown, leave: (tools: unknown) => unknown): unknown {
  if (!isObject(choice)) return choice;
  const tools = leave(choice.tools);
  if (tools !== choice.tools) return { ...choice, tools };
  const { allowed_tools: allowed } = choice;
  if (!isObject(allowed)) return choice;
  const among = leave(allowed.tools);
  return among === allowed.tools ? choice : { ...choice, allowed_tools: { ...allowed, tools: among } };
}

function edited(request: ClientRequest, edits: Edits): ClientRequest {
  if (edits.size === 0) return request;
  const set: Record<string, string | Uint8Array> = {};
  const remove: string[] = [];
  const json: Record<string, unknown> = { ...request.json };
  for (const [name, edit] of edits) {
    if (edit === undefined) remove.push(name);
    else set[name] = edit.raw;
    json[name] = edit?.value;
  }
  const body = spliceJson(request.body, request.scan, { set, remove });
  const scan = scanJson(body);
  if (isJsonFault(scan)) throw new Error("a body lost its form when a tool was taken out");
  return { ...request, body, scan, json };
}
