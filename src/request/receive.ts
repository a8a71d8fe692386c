/** The first step of a request: its body is read, with what it refers to in its place. */

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
  /** The request, or the fault of its body, which the client learns only once its key is known to be good. */
  readonly read: ReadBody | Refusal;
  /**
   * What the key may see, where it has been read already: it may be remembered for this request, and for no other
   * (ARCHITECTURE.md promise 4).
   */
  readonly view: KeyView | undefined;
  /** The client's address as bits, for keys that may be used from some only. */
  readonly address: string;
}

/**
 * Reads the body. A body larger than anybody may send unproven, or than it may become by what it refers to, is read only
 * after a look at its key. That costs such requests one more round trip, which reads one record; admission still decides.
 * @returns the refusal of the key, of a flood above its limit, or of a request that there is no room for.
 */
export async function readRequest(run: Run, key: WellFormedKey, parts: PipelineParts): Promise<RequestRead | Refusal> {
  const { request, record, endpoint, protocol } = run;
  const shed = parts.overload.at("headers", key);
  if (shed) return shed;
  // One with an idempotency key may have been answered before, and is told so; where nobody heeds them it says nothing.
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
  // Only responses clients refer to anything.
  const isWhole = isRefusal(shown) || protocol !== "responses";
  const read = isWhole ? shown : await withReferences(shown, key.tag, endpoint.read, parts, unproven);
  if (refused) return refused;
  if (isRefusal(body) || isRefusal(read)) return { read, view, address };
  // What it refers to has come beside it; of a key that nobody has asked about both are small.
  const noRoom = read.body === body || view === undefined ? undefined : room.hold(body.length + read.body.length);
  return noRoom ?? parts.overload.at("body", key) ?? { read, view, address };
}
