/**
 * What a chat server sends in addition to text and wants back unchanged with the next turn: Gemini's thought signatures
 * (`extra_content`, on a call or on the message) and OpenRouter's `reasoning_details`. Clients of other protocols get
 * it sealed, like reasoning, with the id of the call that it belongs to (docs/translation-rules.md rule 38).
 */

import { arrayOf, isGiven, isObject, type JsonObject, objectOf, objectsIn, textOf } from "../../values/json-object.ts";
import { nestsWithin } from "../reply/depth.ts";
import { safeCallId } from "../rules/ids.ts";

/**
 * Members of a call that are sent back with it: Gemini's and Vertex' own (`extra_content.google`,
 * `extra_content.vertex`), and the names that LiteLLM and Higress give them.
 */
const CALL_MEMBERS = ["extra_content", "provider_specific_fields", "thought_signature"] as const;

/** The member of a message, and the list of its reasoning, that are sent back with it. */
const MESSAGE_MEMBER = "extra_content";
const DETAILS = "reasoning_details";

/** The members of one call. */
interface ReturnedCall {
  /** The id as the client got it; undefined if it is known only when the call ends. */
  readonly id: string | undefined;
  /** The call's position among the calls of its reply, from 0; identifies calls without an id. */
  readonly place: number;
  readonly members: JsonObject;
}

/** The content of one envelope: everything up to this point of the reply that is not in an earlier one. */
export interface Returned {
  /** The readable reasoning. */
  readonly text: string;
  readonly details: readonly JsonObject[];
  readonly message: JsonObject | undefined;
  readonly calls: readonly ReturnedCall[];
}

/** The value of `opaque` in the hub; the native part is sealed, not this. */
export const RETURNED = "returned";

/** Collects these members from one reply, whole or in deltas. */
export class ReturnedParts {
  readonly #keep: (text: string) => void;
  readonly #exceed: (reason: string) => void;
  #details: JsonObject[] = [];
  #message: JsonObject | undefined;
  #calls: ReturnedCall[] = [];

  /** @param sink counts what is kept, and records what nests too deep to be written. */
  constructor(sink: { keep(text: string): void; exceed(reason: string): void }) {
    this.#keep = (text) => sink.keep(text);
    this.#exceed = (reason) => sink.exceed(reason);
  }

  /** Whether there is nothing to take. */
  get isEmpty(): boolean {
    return this.#details.length === 0 && this.#message === undefined && this.#calls.length === 0;
  }

  /** Collects from a message or a delta of one. */
  seeMessage(message: JsonObject): void {
    for (const detail of objectsIn(message[DETAILS])) if (this.#isKept(detail)) this.#details.push(detail);
    const extra = objectOf(message[MESSAGE_MEMBER]);
    // A note that only marks the delta as a thought is not wanted back.
    if (extra && !isThoughtNote(extra) && this.#isKept(extra)) this.#message = { [MESSAGE_MEMBER]: extra };
  }

  /** Collects from a call, or a delta of one. @param id the client's. */
  seeCall(call: JsonObject, id: string | undefined, place: number): void {
    const members = returnedMembers(call);
    if (members && this.#isKept(members)) this.#calls.push({ id: id && safeCallId(id), place, members });
  }

  /** Everything collected, together with its reasoning; only the text if there is nothing else. */
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

/** `extra_content: {google: {thought: true}}` marks the text next to it as reasoning. */
function isThoughtNote(extra: JsonObject): boolean {
  const notes = Object.values(extra);
  return notes.length > 0 && notes.every((note) => isObject(note) && Object.keys(note).join() === "thought");
}

/**
 * Details, with their fragments joined. A stream sends them in fragments, often the signature last and without text. A
 * vendor refuses a block that is returned in fragments (github.com/agno-agi/agno/pull/8861). The `index` alone does not
 * show which fragments belong together: in streams, OpenRouter gives each block the index 0, whatever its type
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

/** Whether a fragment belongs to the last block of its index; another type or id is another block. */
function goesOn(whole: JsonObject, fragment: JsonObject): boolean {
  const contradicts = (name: string) => isSaid(whole[name]) && isSaid(fragment[name]) && whole[name] !== fragment[name];
  if (fragment.type !== whole.type || contradicts("id") || contradicts("format")) return false;
  // A signature is the end of a block; what follows belongs to the next one.
  return !isSaid(whole.signature) || !(TEXTS.some((name) => isSaid(fragment[name])) || contradicts("signature"));
}

/** Whether a member has content: fragments contain empty members too. */
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

/** The sealed content, read again; undefined for plain text, and for anything that was not written here. */
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
 * The members that each call of a turn gets back, by its position in the turn.
 * @param ids of the turn's calls as the client sent them. They are unique: `rules/pairing.ts` refuses duplicates, and a
 * reply never contains one (`reply/tool-call.ts`).
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
