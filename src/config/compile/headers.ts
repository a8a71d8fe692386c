/** Headers that a configuration adds to requests. */
import { Secret } from "../../values/secret.ts";
import type { ConfigPath } from "../problems.ts";
import type { Reader } from "./reader.ts";

/**
 * Whether a text is a field value (RFC 9110 5.5) of visible ASCII. Anything else could not be sent or would split the
 * header section.
 */
export function isFieldValue(text: string): boolean {
  return /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/.test(text);
}

/**
 * Reads values by header name.
 * @param owned names in lowercase that cannot be configured; `why` follows the header's name in the message.
 * @returns the values by lowercase name.
 */
export function readHeaderValues(
  reader: Reader,
  path: ConfigPath,
  headers: Readonly<Record<string, string | undefined>>,
  owned: { readonly names: ReadonlySet<string>; readonly why: string },
): ReadonlyMap<string, Secret> {
  const read = new Map<string, Secret>();
  for (const [key, value] of Object.entries(headers)) {
    if (value === undefined) continue;
    const name = key.toLowerCase();
    const at = [...path, key];
    if (owned.names.has(name)) reader.complain(at, `"${key}" ${owned.why}`, "key");
    else if (read.has(name)) reader.complain(at, `"${key}" is here twice: header names are not case-sensitive`, "key");
    else if (!isFieldValue(value))
      reader.refuse(at, "must be visible ASCII in one line, without spaces before or after it");
    read.set(name, new Secret(value));
  }
  return read;
}
