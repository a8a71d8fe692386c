/**
 * Where a conversation says that an image, a file or a sound is. A server opens such an address with rights of its own: a path
 * with those of its process, `gs://` with those of whoever's credential came with it, which all tenants share (ARCHITECTURE.md
 * promise 14). What anybody could open himself passes, and is never opened here (docs/failure-model.md row 57).
 */
import { type Refusal, refusal } from "../../values/errors.ts";
import type { JsonObject } from "../../values/json-object.ts";
import { ADDRESS_MEMBERS } from "../../values/members/holders.ts";
import type { Met } from "./conversation.ts";

/** Members of the objects in which parts hold their address, or data, by the member that holds the object. */
const OF_HOLDERS: ReadonlyMap<string, readonly string[]> = new Map([
  ["image_url", ["url"]],
  ["audio_url", ["url"]],
  ["video_url", ["url"]],
  ["document_url", ["url"]],
  ["image", ["url", "data"]],
  ["images", ["url", "data"]],
  ["video", ["url", "data"]],
  ["file_data", ["url", "data"]],
  ["source", ["url"]],
  ["audio", ["url", "data"]],
  ["input_audio", ["url", "data"]],
  ["file", ["url"]],
]);
const ADDRESSES: ReadonlySet<string> = new Set(ADDRESS_MEMBERS);
const OPEN_TO_ALL = /^\s*(?:https?:\/\/|data:)/i;
// The first character that base64 does not have is looked for: no pattern begins anew at each of a megabyte's characters. A path of
// letters, digits, `/`, `+`, `_` and `-` alone, such as /etc/passwd, cannot be told from base64, and passes as what is sent itself.
const NOT_BASE64 = /[^A-Za-z0-9+/_=\s-]/;

/** Whether a member of this name may be an address. */
export function mayBeAddress(name: string): boolean {
  return ADDRESSES.has(name);
}

/** Whether an object of a conversation may hold an address, by the member that holds it. */
export function mayHoldAddress(under: string): boolean {
  return OF_HOLDERS.has(under);
}

/** The refusal of an address that a server would open with rights of its own. */
export function refusedAddress({ node, under }: Met): Refusal | undefined {
  const name = foreign(node, ADDRESS_MEMBERS) ?? foreign(node, OF_HOLDERS.get(under) ?? []);
  if (name === undefined) return undefined;
  const detail = "An address begins with http:// or https://; what is sent itself is base64, or a data: URL.";
  return refusal("wrong_type", { param: `${under}[].${name}`, detail });
}

function foreign(node: JsonObject, names: readonly string[]): string | undefined {
  return names.find((name) => {
    const address = node[name];
    // Some servers take a list of one, or of the pictures of a film.
    return Array.isArray(address) ? address.some(isForeign) : isForeign(address);
  });
}

function isForeign(address: unknown): boolean {
  return typeof address === "string" && !OPEN_TO_ALL.test(address) && NOT_BASE64.test(address);
}
