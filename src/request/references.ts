/**
 * Puts the items that a request refers to in their place before any decision about it. So what is held, limited,
 * converted and explained is what the model will read (docs/decisions/references-carry-what-they-name.md).
 */
import { type BodyGate, UNPROVEN_BYTES_MAX } from "../accept/body.ts";
import type { ReadBody } from "../accept/envelope.ts";
import { TURNS } from "../accept/turns.ts";
import type { ConvertContext } from "../convert/exchange.ts";
import { mayRefer, withItemsInPlace } from "../convert/responses/references/opening.ts";
import { mayNameStored, storedNamesOf } from "../convert/responses/stored/request.ts";
import type { AttemptRecord } from "../dispatch/ask.ts";
import type { Route } from "../values/catalog.ts";
import { isRefusal, type Refusal, refusal } from "../values/errors.ts";
import type { AccountTag } from "../values/key.ts";
import type { StoredNames } from "../values/members/stored.ts";
import type { Protocol } from "../values/protocol.ts";
import { contextOf } from "./context.ts";
import type { PipelineParts } from "./run.ts";

/**
 * How many times larger than its body a request may become by what it refers to. Sealed items are a third to a half of
 * their contents; repetitive text could be a thousandth.
 */
const EXPANSION_MAX = 8;
/** A short body may become at least this large. */
const EXPANDED_BYTES_MIN = 1024 * 1024;

/** Reads a body that has the form that its path requires. */
type ReadAgain = (protocol: Protocol, body: Uint8Array) => Promise<ReadBody | Refusal>;

/**
 * The request as if its client had sent the items that it refers to.
 * @param tag of the account whose key was presented: only what was sealed for this account is opened. The key need not
 *   have been checked yet, because nothing that was opened is revealed before that.
 * @param gate called once, before more than UNPROVEN_BYTES_MAX are opened or put in place; undefined if the key was
 *   checked.
 * @param again reads the body that has the items in it.
 * @returns the request itself if it refers to nothing, or to something that cannot be opened, which its route refuses;
 *   a refusal if the items together exceed the maximum size of a body or of an expansion of this one; or the gate's
 *   refusal.
 */
export function withReferences(
  read: ReadBody,
  tag: AccountTag,
  again: ReadAgain,
  parts: Pick<PipelineParts, "clock" | "sealing" | "settings">,
  gate?: BodyGate,
): ReadBody | Promise<ReadBody | Refusal> {
  // Nearly all requests: no promise is created for these.
  if (read.envelope.protocol !== "responses" || !mayRefer(read.body)) return read;
  return referring(read, tag, again, parts, gate);
}

async function referring(
  read: ReadBody,
  tag: AccountTag,
  again: ReadAgain,
  parts: Pick<PipelineParts, "clock" | "sealing" | "settings">,
  gate: BodyGate | undefined,
): Promise<ReadBody | Refusal> {
  const { protocol } = read.envelope;
  const { bodyBytesMax } = parts.settings();
  const context = contextOf(parts, { tag });
  await TURNS.next();
  const bytesMax = Math.min(bodyBytesMax, Math.max(EXPANDED_BYTES_MIN, EXPANSION_MAX * read.body.length));
  const unproven = gate && { bytesMax: UNPROVEN_BYTES_MAX, gate };
  const placed = await withItemsInPlace(read, context, { bytesMax, unproven }, TURNS.pace());
  if (isRefusal(placed)) return placed;
  if (placed !== "too_large" && placed.body === read.body) return naming(read, context);
  if (placed === "too_large" || placed.body.length > bodyBytesMax) {
    const detail = `The items that it refers to are larger than ${placed === "too_large" ? bytesMax : bodyBytesMax} bytes.`;
    const remedy = "Send the items themselves instead of the references, or fewer of them.";
    return refusal("body_too_large", { param: "input", detail, remedy });
  }
  const { body, lost: lostReferences } = placed;
  const reread = await again(protocol, body);
  return isRefusal(reread) ? reread : naming({ ...reread, lostReferences }, context);
}

/** The request with what its wrapped ids name. Its hold covers what its server reads in addition to it. */
async function naming(read: ReadBody, context: ConvertContext): Promise<ReadBody> {
  const stored = mayNameStored(read.body) ? await storedNamesOf(read.json, context, TURNS.pace()) : undefined;
  if (!stored) return read;
  return { ...read, stored, envelope: { ...read.envelope, readsStored: stored.needed !== undefined } };
}

/** The routes that a request may take: what a server keeps for it exists only at that server. */
export function routesFor(routes: readonly Route[], { stored }: Pick<ReadBody, "stored">): readonly Route[] {
  const needed = stored?.needed;
  if (!needed) return routes;
  const keeping = routes.filter((route) => route.stateful && route.upstream === needed.upstream);
  return keeping.length > 0 ? keeping : routes;
}

/** Why a request that needs a server's stored data was not answered: no other server can replace that one. */
export function refusedBesideStored(
  refused: Refusal,
  attempts: readonly AttemptRecord[],
  { json, stored }: Pick<ReadBody, "json" | "stored">,
): Refusal {
  const last = attempts.at(-1);
  if (!stored?.needed || last === undefined || refused.cause === "draining") return refused;
  if (last.status === 404) {
    const param = json.previous_response_id === undefined ? "input" : "previous_response_id";
    const detail = "The server that should have kept what it refers to has nothing with this id.";
    const remedy = "Send the whole conversation instead of the reference.";
    return refusal("unsupported_parameter", { param, detail, remedy });
  }
  // A server without this endpoint says nothing about the reference.
  if (refused.cause === "unknown_path") return refused;
  const detail = "It refers to data that one server keeps, so no other server can answer.";
  if (refused.cause === "upstream_rejected") return inClientsIds(refused, stored);
  return { ...refused, facts: { ...refused.facts, detail } };
}

/** A server's message with the id that the client knows; the client never sees the server's own. */
function inClientsIds(refused: Refusal, { names }: StoredNames): Refusal {
  let { upstreamMessage } = refused;
  for (const [wrapped, name] of names) if (name) upstreamMessage = upstreamMessage?.replaceAll(name.id, () => wrapped);
  return { ...refused, upstreamMessage };
}
