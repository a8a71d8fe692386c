/**
 * Finds references, in conversations and tools, to what their server keeps or to what costs more than its price. What a
 * server keeps belongs to the holder of the upstream's credential, and so to all tenants together; no tenant may reach
 * it (ARCHITECTURE.md promise 14). Also finds names in place of tools, by which a server could offer one of its own.
 */
import { isGiven, isObject, type JsonObject, objectOf } from "../../values/json-object.ts";
import { ADDRESS_MEMBERS, ENTERED_HOLDERS, HOLDERS, TOOL_HOLDERS } from "../../values/members/holders.ts";
import type { Protocol } from "../../values/protocol.ts";
import { holdsMatch, type JsonMember, visitNames } from "../../wire/json.ts";
import type { ClientRequest } from "../exchange.ts";

/** The members of a body that contain parts or tools. */
const ROOTS: Readonly<Record<Protocol, readonly string[]>> = {
  chat: ["messages", "tools", "functions", "prediction"],
  messages: ["system", "messages", "tools"],
  responses: ["instructions", "input", "tools"],
};

const OF_TOOLS: ReadonlySet<string> = new Set(TOOL_HOLDERS);
/** The members that `stateMember` checks, except `type`. A member that is missing here is never found. */
const STATE_NAMES: ReadonlySet<string> = new Set([
  "file_id",
  "file_ids",
  "vector_store_ids",
  "container",
  "container_id",
  "environment",
  "input_image_mask",
  "tunnel_id",
  "uuid",
]);
/** Media of a part that vLLM keeps under the part's `uuid`, whoever sends the next part with it. */
const KEPT_BY_UUID = ["image_url", "audio_url", "input_audio", "video_url", "image_embeds", "audio_embeds"] as const;
/** Members in which a server expects the definition of a tool, or a list of these. */
const OFFER_NAMES: ReadonlySet<string> = new Set([...TOOL_HOLDERS, "tool_changes"]);
/** Whether a member is looked at for what it is, or as an offer, or only for what it holds. */
const LOOKED_AT: ReadonlyMap<string, "state" | "offer" | "holder"> = new Map(
  [...ENTERED_HOLDERS, ...STATE_NAMES, "type"].map((name) => [
    name,
    STATE_NAMES.has(name) ? "state" : OFFER_NAMES.has(name) ? "offer" : "holder",
  ]),
);
const CONTAINER_UPLOAD = "container_upload";
const ITEM_REFERENCE = "item_reference";
/** The member that makes a container cost more than its price. */
export const MEMORY_LIMIT = ".memory_limit";
/** The memory of a container by default, for which its price is set. */
export const MEMORY_USUAL = "1g";

/** A place of a body that no server may get. */
export interface RefusedPlace {
  readonly path: string;
  /** Whether it is a name in place of a tool. Otherwise it refers to something kept, or to a container of another size. */
  readonly isToolName: boolean;
}

/** The first part or tool that refers to something kept, or is only a name; undefined: none. */
export function firstStatePlace({
  protocol,
  json,
}: Pick<ClientRequest, "protocol" | "json">): RefusedPlace | undefined {
  for (const root of ROOTS[protocol]) {
    const place = firstStatePart(json[root], root);
    if (place !== undefined) return place;
  }
  return undefined;
}

/**
 * Names, or prefixes of names, with which a conversation offers tools, changes the reasoning, or locates an image, a file
 * or audio.
 */
const OFFERS = [
  "additional_tools",
  "tool_search_output",
  "tool_addition",
  "tool_changes",
  "tool_definition",
  "definition",
  "configuration_update",
];
const ADDRESSES = [
  "image",
  "file",
  "video",
  "document",
  "input_audio",
  "input_image",
  "input_file",
  "input_video",
  "source",
  "url",
];

/**
 * Text without a match contains nothing to find: none of the names, and no letters as escapes, which could spell one.
 * A match inside a text costs only a walk through the names.
 */
const WORDS = new RegExp(
  `"(?:${[...STATE_NAMES, "skill", "memory_limit", "audio", ITEM_REFERENCE, CONTAINER_UPLOAD, ...OFFERS, ...ADDRESSES].join("|")})|\\\\u00[2-7]`,
);
/**
 * The same for a conversation: some servers read tools in any message. `"tool"` is also a role, which a comma or a brace
 * follows. The names in the tools of the body itself have been checked when it was read (values/members.ts).
 */
const WORDS_OF_CONVERSATION = new RegExp(`${WORDS.source}|"tools"|"tool"(?!\\s*[,}])`);
/**
 * Names that decide the checks. They must not occur twice or be escaped: parsers differ in which of two values counts,
 * and in ours a second name can hide one that is written with escapes.
 */
const DECIDING: ReadonlySet<string> = new Set([
  ...LOOKED_AT.keys(),
  ...["id", "approval_request_id", "skills", "skill_id", "memory_limit"],
  ...["url", "data", "execution", "min_pixels", "resized_height", "resized_width", ...ADDRESS_MEMBERS],
  ...["reasoning", "mode"],
]);
const ENTERED: ReadonlySet<string> = new Set([...HOLDERS, "reasoning"]);

/**
 * The first name that decides a check and occurs twice in its object or is written with escapes; undefined: none, or
 * the body contains nothing to reach.
 * @param isStateful whether an id alone can reach something.
 */
export function firstAmbiguousName(
  { protocol, body, scan }: Pick<ClientRequest, "protocol" | "body" | "scan">,
  isStateful: boolean,
): string | undefined {
  const roots = scan.members.filter(({ name }) => ROOTS[protocol].includes(name));
  const mayFind = ({ name, valueStart, valueEnd }: JsonMember) =>
    holdsMatch(body.subarray(valueStart, valueEnd), name === "tools" ? WORDS : WORDS_OF_CONVERSATION);
  if (!isStateful && !roots.some(mayFind)) return undefined;
  let found: string | undefined;
  for (const { name: root, valueStart } of roots) {
    visitNames(body, valueStart, root, (name, plain, again, under) => {
      if ((again || !plain) && DECIDING.has(name)) found ??= `${under}[].${name}`;
      return ENTERED.has(name) ? name : undefined;
    });
  }
  return found;
}

interface StatePlace {
  readonly value: unknown;
  readonly path: string;
  /** Whether it is in a list of tools. */
  readonly isTool: boolean;
  /** Whether it must be an object, because a server could read a name here as one of its own tools. */
  readonly isOffer: boolean;
  /** Whether it is an item of the input; its own reference is checked elsewhere. */
  readonly isItem: boolean;
}

/** Searches without recursion, because the client chooses the depth (docs/failure-model.md row 44). */
function firstStatePart(root: unknown, rootPath: string): RefusedPlace | undefined {
  const isTool = rootPath === "tools" || rootPath === "functions";
  if (!(isTool && holdsName(root)) && !mayHoldStatePart(root)) return undefined;
  const stack: StatePlace[] = [{ value: root, path: rootPath, isTool, isOffer: isTool, isItem: rootPath === "input" }];
  for (let next = stack.pop(); next; next = stack.pop()) {
    const { value, path } = next;
    if (Array.isArray(value)) {
      for (let index = value.length - 1; index >= 0; index--)
        stack.push({ ...next, value: value[index], path: `${path}[${index}]` });
      continue;
    }
    const part = objectOf(value);
    if (!part) {
      if (next.isOffer && isGiven(value)) return { path, isToolName: true };
      continue;
    }
    const found = stateMember(part, next);
    if (found !== undefined) return { path: `${path}.${found}`, isToolName: false };
    for (const name of ENTERED_HOLDERS) {
      const held = part[name];
      if (held === undefined) continue;
      const [isTool, isOffer] = [OF_TOOLS.has(name), mustBeTool(name, part)];
      stack.push({ value: held, path: `${path}.${name}`, isTool, isOffer, isItem: false });
    }
  }
  return undefined;
}

/** Types of the changes of tools in a messages conversation. */
const CHANGES: ReadonlySet<unknown> = new Set(["tool_addition", "tool_removal"]);

/**
 * Whether a member of a part must be a tool, or a list of tools. Outside of changes, `tool` as a text is the name of the
 * tool that has made a result (Mistral's `tool_reference`), and `definition` is text.
 */
function mustBeTool(name: string, { type }: JsonObject): boolean {
  if (name === "tool") return CHANGES.has(type);
  if (name === "definition") return type === "tool_definition";
  return OFFER_NAMES.has(name);
}

/** Whether an offer of tools holds anything that is no object: a name, or a list in the list. */
function holdsName(offer: unknown): boolean {
  return Array.isArray(offer) ? !offer.every(isObject) : isGiven(offer) && !isObject(offer);
}

/**
 * Whether there is anything to find. It builds no paths and goes through the names of each object once, so a megabyte
 * of small members takes a fifth of the time: 1 ms, during which the event loop is blocked.
 */
function mayHoldStatePart(root: unknown): boolean {
  const stack: unknown[] = [root];
  while (stack.length > 0) {
    const value = stack.pop();
    if (Array.isArray(value)) {
      for (const item of value) if (typeof item === "object" && item !== null) stack.push(item);
      continue;
    }
    const part = objectOf(value);
    for (const name in part) {
      const kind = LOOKED_AT.get(name);
      if (kind === undefined) continue;
      const held = part[name];
      if (kind === "state" || held === CONTAINER_UPLOAD || held === ITEM_REFERENCE) return true;
      if (kind === "offer" && holdsName(held)) return true;
      if (typeof held !== "object" || held === null) continue;
      if (name === "audio" && (Array.isArray(held) || Object.hasOwn(held, "id"))) return true;
      stack.push(held);
    }
  }
  return false;
}

function stateMember(part: JsonObject, { path, isTool, isItem }: StatePlace): string | undefined {
  if (isTool) return toolMember(part);
  for (const name of ["file_id", "file_ids"]) if (isNamed(part[name])) return name;
  if (isNamed(part.uuid) && KEPT_BY_UUID.some((name) => part[name] !== undefined)) return "uuid";
  if (part.type === CONTAINER_UPLOAD || (part.type === ITEM_REFERENCE && !isItem)) return "type";
  if (part.vector_store_ids !== undefined && part.vector_store_ids !== null) return "vector_store_ids";
  const place = ranMember(part, isItem);
  if (place !== undefined) return place;
  return AUDIO.test(path) && isNamed(part.id) ? "id" : undefined;
}

/** Earlier audio is referred to by its id. */
const AUDIO = /\.audio(?:\[\d+\])?$/;

/**
 * The member that refers to something kept, in the parts that say where something ran. The container of an item is
 * checked elsewhere.
 */
function ranMember({ container, container_id: id, environment }: JsonObject, isItem: boolean): string | undefined {
  if (!isItem && isNamed(id)) return "container_id";
  for (const [name, where] of Object.entries({ container, environment })) {
    if (where === undefined || where === null || SCREENS.has(where)) continue;
    const made = objectOf(where);
    if (made === undefined) return name;
    const isJudged = isItem && name === "environment";
    const members = isJudged ? ["id", "file_ids"] : ["id", "container_id", "file_ids"];
    const found = members.find((member) => isNamed(made[member])) ?? keptSkill(made);
    if (found !== undefined) return `${name}.${found}`;
  }
  return undefined;
}

/** Servers differ in which single values they accept in place of a list, so any value counts as a reference. */
function toolMember(tool: JsonObject): string | undefined {
  for (const name of ["file_id", "file_ids"]) if (isNamed(tool[name])) return name;
  if (tool.vector_store_ids !== undefined && tool.vector_store_ids !== null) return "vector_store_ids";
  const { input_image_mask: mask } = tool;
  if (isNamed(mask) && objectOf(mask) === undefined) return "input_image_mask";
  if (isNamed(objectOf(mask)?.file_id)) return "input_image_mask.file_id";
  if (isNamed(tool.tunnel_id)) return "tunnel_id";
  if (tool.type === CONTAINER_UPLOAD) return "type";
  for (const name of ["container", "environment"]) {
    const found = placeMember(tool[name]);
    if (found !== undefined) return found === "" ? name : `${name}.${found}`;
  }
  return undefined;
}

/**
 * The member of a tool's container or environment that shows that it is not created for this request or not of the
 * default size; "": the whole value.
 */
function placeMember(place: unknown): string | undefined {
  if (place === undefined || place === null) return undefined;
  if (SCREENS.has(place)) return undefined;
  const made = objectOf(place);
  if (made === undefined) return "";
  if (!MADE_FOR_IT.has(made.type)) return "type";
  for (const name of ["id", "container_id", "file_ids"]) if (isNamed(made[name])) return name;
  const skill = keptSkill(made);
  if (skill !== undefined) return skill;
  const { memory_limit: memory } = made;
  return memory === undefined || memory === null || memory === MEMORY_USUAL ? undefined : MEMORY_LIMIT.slice(1);
}

/** The first skill that refers to a kept one; a skill that the request contains itself passes. */
function keptSkill({ skills }: JsonObject): string | undefined {
  const all: readonly unknown[] = Array.isArray(skills) ? skills : [skills];
  const kept = all.findIndex((one) => {
    if (typeof one === "string" || Array.isArray(one)) return true;
    const { skill_id, id, source } = objectOf(one) ?? {};
    return skill_id !== undefined || id !== undefined || objectOf(source)?.file_id !== undefined;
  });
  return kept < 0 ? undefined : `skills[${kept}]`;
}

/** The values of `environment` with which a computer-use tool names the client's screen. */
const SCREENS: ReadonlySet<unknown> = new Set(["browser", "linux", "mac", "ubuntu", "windows"]);

/** Types of a container or an environment that is created for the request or belongs to the client. */
const MADE_FOR_IT: ReadonlySet<unknown> = new Set([undefined, null, "auto", "container_auto", "local"]);

function isNamed(value: unknown): boolean {
  return value !== undefined && value !== null && !(Array.isArray(value) && value.length === 0);
}
