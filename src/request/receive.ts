/** The first step of a request: its body is read, and what it refers to is put in its place. */

import type { BodyGate } from "../accept/body.ts";
import type { ReadBody } from "../accept/envelope.ts";
import { idempotencyKeyOf } from "../accept/headers.ts";
import { readKeyView } from "../admit/key-view.ts";
import { knownLimit } from "../admit/refused.ts";
import { addressBits } from "../store/limits/address-bits.ts";
import type { KeyView } from "../store/records.ts";
import { isRefusal, type Refusal, refusal } from "../values/errors.ts";
import type { WellFormedKey } from "../values/key.ts";
import { withReferences } from "./references.ts";
import type { PipelineParts, Run } from "./run.ts";

/** What a client has sent, as far as it was read. */
export interface RequestRead {
  /** The request, or the fault of its body. The client gets this fault only once its key is known to be good. */
  readonly read: ReadBody | Refusal;
  /**
   * What the key may see, if it has been read already. It may be reused for this request only (ARCHITECTURE.md promise
   * 4).
   */
  readonly view: KeyView | undefined;
  /** The client's address as bits, for keys that are limited to certain addresses. */
  readonly address: string;
}

/**
 * Reads the body. If the body is larger than UNPROVEN_BYTES_MAX, or may become so by what it refers to, its key is read
 * first. This costs such requests one more round trip, which reads one record; admission still decides.
 * @returns the refusal of the key, of a flood above its limit, or of a request for which there is no room.
 */
export async function readRequest(run: Run, key: WellFormedKey, parts: PipelineParts): Promise<RequestRead | Refusal> {
  const { request, record, endpoint, protocol } = run;
  const shed = parts.overload.at("headers", key);
  if (shed) return shed;
  // A request with an idempotency key may have been answered before, and must get that answer. If the feature is
  // disabled, the key means nothing.
  const isNamed = parts.settings().idempotency.enabled && idempotencyKeyOf(request.headers) !== undefined;
  const limited = isNamed ? undefined : knownLimit(key, protocol, parts.admit.catalog(), parts.admit);
  if (limited) return limited;
  const address = addressBits(request.clientAddress ?? "");
  let view: KeyView | undefined;
  let refused: Refusal | undefined;
  const gate: BodyGate = async () => {
    const found = parts.journal.health().usable
      ? await readKeyView(key, address, parts.admit)
      : refusal("journal_full");
    if (isRefusal(found)) refused = found;
    else view = found;
    return refused;
  };
  const room = parts.overload.roomFor(key.tag);
  const body = await request.readBody(gate, room);
  record.bodyRead();
  if (refused) return refused;
  const shown = isRefusal(body) ? body : await endpoint.read(protocol, body);
  const unproven = view === undefined ? gate : undefined;
  // Only clients of the responses protocol refer to anything.
  const isWhole = isRefusal(shown) || protocol !== "responses";
  const read = isWhole ? shown : await withReferences(shown, key.tag, endpoint.read, parts, unproven);
  if (refused) return refused;
  if (isRefusal(body) || isRefusal(read)) return { read, view, address };
  run.model = read.envelope.model;
  // The items that it refers to exist in addition to the body. If the key was not checked, both are small.
  const noRoom = read.body === body || view === undefined ? undefined : room.hold(body.length + read.body.length);
  return noRoom ?? parts.overload.at("body", key) ?? { read, view, address };
}
