/**
 * What a chat server gives beside its words and wants back with the next turn, unread: thought signatures of Gemini
 * (`extra_content`, on a call or on the message) and OpenRouter's `reasoning_details`. Clients of other protocols carry
 * it sealed, as they carry reasoning, with the id of the call that it belongs to (docs/translation-rules.md rule 38).
 */

import { arrayOf, isGiven, isObject, type JsonObject, objectOf, objectsIn, textOf } from "../../values/json-object.ts";
import { nestsWithin } from "../reply/depth.ts";
import { safeCallId } from "../rules/ids.ts";

/**
 * Members of a call that come back with it: Gemini's own and Vertex' (`extra_content.google`, `extra_content.vertex`),
 * and the names that LiteLLM and Higress give them.
 */
const CALL_MEMBERS = ["extra_content", "provider_specific_fields", "thought_signature"] as const;

/** The member of a message, and the list of its reasoning, that come back with it. */
const MESSAGE_MEMBER = "extra_content";
const DETAILS = "reasoning_details";

/** What belongs to one call. */
interface ReturnedCall {
  /** The id as the client got it; undefined where it is known only when the call ends. */
  readonly id: string | undefined;
  /** The call's place among the calls of its reply, from 0: for those without an id. */
  readonly place: number;
  readonly members: JsonObject;
}

/** What is sealed of one stretch of a reply: all that came up to there and was not sealed before. */
export interface Returned {
  /** The readable reasoning. */
  readonly text: string;
  readonly details: readonly JsonObject[];
  readonly message: JsonObject | undefined;
  readonly calls: readonly ReturnedCall[];
}

/** The word that stands for `opaque` in the hub: what is sealed is the native part, not this. */
export const RETURNED = "returned";

/** Collects what comes in one reply, whole or in deltas. */
export class ReturnedParts {
  readonly #keep: (text: string) => void;
  readonly #exceed: (reason: string) => void;
  #details: JsonObject[] = [];
  #message: JsonObject | undefined;
  #calls: ReturnedCall[] = [];

  /** @param sink counts what is kept, and what cannot be written again. */
  constructor(sink: { keep(text: string): void; exceed(reason: string): void }) {
    this.#keep = (text) => sink.keep(text);
    this.#exceed = (reason) => sink.exceed(reason);
  }

  /** Whether there is anything that has not been taken. */
  get isEmpty(): boolean {
    return this.#details.length === 0 && this.#message === undefined && this.#calls.length === 0;
  }

  /** Looks at a message or a delta of one. */
  seeMessage(message: JsonObject): void {
    for (const detail of objectsIn(message[DETAILS])) if (this.#isKept(detail)) this.#details.push(detail);
    const extra = objectOf(message[MESSAGE_MEMBER]);
    // A mere note that this delta is a thought says nothing that anybody wants back.
    if (extra && !isThoughtNote(extra) && this.#isKept(extra)) this.#message = { [MESSAGE_MEMBER]: extra };
  }

  /** Looks at a call, or a delta of one. @param id the client's. */
  seeCall(call: JsonObject, id: string | undefined, place: number): void {
    const members = returnedMembers(call);
    if (members && this.#isKept(members)) this.#calls.push({ id: id && safeCallId(id), place, members });
  }

  /** All that was collected, with the reasoning that it goes with; the text alone where there is nothing else. */
  take(text: string): Returned | string {
    if (this.isEmpty) return text;
    const returned = { text, details: mergedDetails(this.#details), message: this.#message, calls: this.#calls };
    this.#details = [];
    this.#message = undefined;
    this.#calls = [];
    return returned;
  }

  #isKept(value: JsonObject): boolean {
    if (!nestsWithin(value)) {
      this.#exceed("what the server wants back nests too deep");
      return false;
    }
    this.#keep(JSON.stringify(value));
    return true;
  }
}

/** The members of a call that its server wants back; undefined: none. */
function returnedMembers(call: JsonObject): JsonObject | undefined {
  const given = CALL_MEMBERS.filter((name) => isGiven(call[name]));
  return given.length === 0 ? undefined : Object.fromEntries(given.map((name) => [name, call[name]]));
}

/** `extra_content: {google: {thought: true}}` marks the text beside it as reasoning. */
function isThoughtNote(extra: JsonObject): boolean {
  const notes = Object.values(extra);
  return notes.length > 0 && notes.every((note) => isObject(note) && Object.keys(note).join() === "thought");
}

/**
 * Details in one piece: a stream sends them in fragments, the signature often in a last one without text. A vendor refuses a
 * block that comes back in fragments (github.com/agno-agi/agno/pull/8861). The `index` alone does not say what belongs
 * together: in streams OpenRouter gives each block the index 0, whatever its type
 * (github.com/OpenRouterTeam/ai-sdk-provider/issues/519).
 */
export function mergedDetails(fragments: readonly JsonObject[]): readonly JsonObject[] {
  const merged: Record<string, unknown>[] = [];
  const latest = new Map<unknown, Record<string, unknown>>();
  for (const fragment of fragments) {
    const index = fragment.index ?? undefined;
    const whole = index === undefined ? undefined : latest.get(index);
    if (whole && goesOn(whole, fragment)) joinDetail(whole, fragment);
    else {
      const begun = { ...fragment };
      if (index !== undefined) latest.set(index, begun);
      merged.push(begun);
    }
  }
  return merged;
}

/** Whether a fragment belongs to the last block of its index: another type or id is another block. */
function goesOn(whole: JsonObject, fragment: JsonObject): boolean {
  const contradicts = (name: string) => isSaid(whole[name]) && isSaid(fragment[name]) && whole[name] !== fragment[name];
  if (fragment.type !== whole.type || contradicts("id") || contradicts("format")) return false;
  // A signature is the last of a block, so what comes after it begins the next.
  return !isSaid(whole.signature) || !(TEXTS.some((name) => isSaid(fragment[name])) || contradicts("signature"));
}

/** Whether there is more than an empty string: fragments have members only to have them. */
function isSaid(value: unknown): boolean {
  return value !== undefined && value !== null && value !== "";
}

function joinDetail(whole: Record<string, unknown>, fragment: JsonObject): void {
  for (const [name, value] of Object.entries(fragment)) {
    if (value === undefined || value === null) continue;
    const isText = JOINED.has(name) && typeof whole[name] === "string" && typeof value === "string";
    whole[name] = isText ? `${whole[name]}${value}` : value;
  }
}

const TEXTS = ["text", "summary"] as const;
const JOINED: ReadonlySet<string> = new Set([...TEXTS, "data"]);

/** What was sealed, read again; undefined for plain text, and for what nobody here has written. */
export function returnedOf(native: unknown): Returned | undefined {
  const sealed = objectOf(native);
  if (!sealed) return undefined;
  return {
    text: textOf(sealed.text) ?? "",
    details: objectsIn(sealed.details),
    message: objectOf(sealed.message),
    calls: arrayOf(sealed.calls).flatMap(returnedCall),
  };
}

function returnedCall(value: unknown): readonly ReturnedCall[] {
  const call = objectOf(value);
  const members = objectOf(call?.members);
  if (!call || !members) return [];
  const place = typeof call.place === "number" ? call.place : -1;
  return [{ id: textOf(call.id), place, members }];
}

/**
 * The members that each call of a turn gets back, by its place in the turn.
 * @param ids of the turn's calls as the client brought them: no two are alike (`rules/pairing.ts` refuses that), and a reply gives
 *   none twice (`reply/tool-call.ts`).
 */
export function returnedToCalls(
  ids: readonly string[],
  sealed: readonly Returned[],
): ReadonlyMap<number, Record<string, unknown>> {
  const given = new Map<number, Record<string, unknown>>();
  for (const call of sealed.flatMap((one) => one.calls)) {
    const named = call.id === undefined ? call.place : ids.indexOf(call.id);
    if (named < 0 || named >= ids.length) continue;
    given.set(named, { ...given.get(named), ...call.members });
  }
  return given;
}
