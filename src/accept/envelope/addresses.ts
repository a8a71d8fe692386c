/**
 * The addresses of images, files and audio in a conversation. A server opens such an address with its own rights: a
 * path with those of its process, `gs://` with the credential of the upstream, which all tenants share (ARCHITECTURE.md
 * promise 14). An address that anybody could open is passed on and never opened here (docs/failure-model.md row 57).
 */
import { type Refusal, refusal } from "../../values/errors.ts";
import type { JsonObject } from "../../values/json-object.ts";
import { ADDRESS_MEMBERS } from "../../values/members/holders.ts";
import type { Met } from "./conversation.ts";

/** Members of the objects in which parts hold their address or data. Keyed by the member that holds the object. */
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
// Finds the first character that is not base64; the pattern does not restart at each character of a megabyte. A path
// that consists only of letters, digits, `/`, `+`, `_` and `-`, such as /etc/passwd, looks like base64 and passes as
// inline data.
const NOT_BASE64 = /[^A-Za-z0-9+/_=\s-]/;

/** Whether a member with this name may be an address. */
export function mayBeAddress(name: string): boolean {
  return ADDRESSES.has(name);
}

/** Whether an object of a conversation may hold an address. @param under the member that holds the object. */
export function mayHoldAddress(under: string): boolean {
  return OF_HOLDERS.has(under);
}

/** The refusal of an address that a server would open with its own rights. */
export function refusedAddress({ node, under }: Met): Refusal | undefined {
  const name = foreign(node, ADDRESS_MEMBERS) ?? foreign(node, OF_HOLDERS.get(under) ?? []);
  if (name === undefined) return undefined;
  const detail = "An address must begin with http:// or https://. Inline data must be base64 or a data: URL.";
  return refusal("wrong_type", { param: `${under}[].${name}`, detail });
}

function foreign(node: JsonObject, names: readonly string[]): string | undefined {
  return names.find((name) => {
    const address = node[name];
    // Some servers take a list with one address, or with the frames of a video.
    return Array.isArray(address) ? address.some(isForeign) : isForeign(address);
  });
}

function isForeign(address: unknown): boolean {
  return typeof address === "string" && !OPEN_TO_ALL.test(address) && NOT_BASE64.test(address);
}
