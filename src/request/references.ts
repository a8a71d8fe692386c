/**
 * Items that a request refers to, put in their place before anything is decided about it: what is held, limited, converted
 * and explained is what the model will read (docs/decisions/references-carry-what-they-name.md).
 */
import type { ReadBody } from "../accept/envelope.ts";
import { TURNS } from "../accept/turns.ts";
import { mayRefer, withItemsInPlace } from "../convert/responses/references.ts";
import { type Refusal, refusal } from "../values/errors.ts";
import type { AccountTag } from "../values/key.ts";
import type { Protocol } from "../values/protocol.ts";
import { contextOf } from "./context.ts";
import type { PipelineParts } from "./run.ts";

/** Reads a body, which has the form that its path demands. */
type ReadAgain = (protocol: Protocol, body: Uint8Array) => Promise<ReadBody | Refusal>;

/**
 * The request as if its client had sent the items that it refers to.
 * @param tag of the account whose key was presented: only what was sealed for it is opened. The key need not be proven yet,
 *   since nothing is said of what was opened before it is.
 * @param again reads the body that has the items in it.
 * @returns the request itself where it refers to nothing, or to something that cannot be opened, which its route refuses; a
 *   refusal where the items are together larger than a body may be.
 */
export async function withReferences(
  read: ReadBody,
  tag: AccountTag,
  again: ReadAgain,
  parts: Pick<PipelineParts, "clock" | "sealing" | "settings">,
): Promise<ReadBody | Refusal> {
  const { protocol } = read.envelope;
  if (protocol !== "responses" || !mayRefer(read.body)) return read;
  const { bodyBytesMax } = parts.settings();
  await TURNS.next();
  const body = await withItemsInPlace(read, contextOf(parts, { tag }), bodyBytesMax, TURNS.pace());
  if (body === read.body) return read;
  if (body === "too_large" || body.length > bodyBytesMax) {
    const detail = `The items that it refers to have more than ${bodyBytesMax} bytes.`;
    return refusal("body_too_large", { param: "input", detail });
  }
  return again(protocol, body);
}
