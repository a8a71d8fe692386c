/**
 * The hold of a stream without an output limit whose reply the upstream keeps
 * (docs/decisions/stateful-upstreams-get-wrapped-ids.md). Closing the connection may not stop such a server, and the
 * client can read all that it writes. So the limit that is sent must be held from the beginning, and not in steps.
 */
import type { Admitted } from "../store/admission.ts";
import type { Store } from "../store/contract.ts";
import type { Model } from "../values/catalog.ts";
import type { Envelope } from "../values/members/envelope.ts";
import { leastNano, nanoUsd } from "../values/money.ts";
import type { Permit } from "./permit.ts";
import type { Growth } from "./terms.ts";

const NONE = nanoUsd(0n);

/** Whether one of the model's upstreams may keep the reply, so that the client can read it later. */
export function mayBeKept({ keepsReply }: Envelope, { routes }: Model): boolean {
  return keepsReply === true && routes.some(({ stateful }) => stateful === true);
}

/**
 * Raises the hold to what the model's whole output costs, but by at most half of what the payer has free: otherwise the
 * first stream of a small balance would take all of it. The holds of many streams together never exceed the funds.
 * @returns the admission with this hold, and nothing free in addition to it: the limit that is sent is the one that the
 *   hold covers. If the store gives no answer, the hold stays as it was.
 */
export async function holdWhatIsSent(
  { requestId, tag }: Pick<Permit, "requestId" | "tag">,
  admitted: Admitted,
  { holdFor, outputTokensMax }: Growth,
  { store }: { readonly store: Pick<Store, "extend"> },
): Promise<Admitted> {
  const { hold, free = NONE } = admitted;
  const target = leastNano(holdFor(outputTokensMax), nanoUsd(hold + free / 2n));
  try {
    const answer = await store.extend({ requestId, tag, target });
    return { ...admitted, hold: answer.outcome === "held" ? answer.hold : hold, free: NONE };
  } catch {
    // The store may still raise the hold. Its settlement releases all of it, whatever its amount.
    return { ...admitted, free: NONE };
  }
}
