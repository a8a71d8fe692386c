/**
 * Ids of what a `stateful` upstream keeps, and of the containers of any upstream. A wrapped id is the server's own id
 * with upstream and model, sealed for the account. Every replica wraps the same id in the same way at any time, so
 * clients can compare ids (docs/decisions/stateful-upstreams-get-wrapped-ids.md).
 */
import type { StoredName, StoredNames } from "../../../values/members/stored.ts";
import { SEALED_PREFIX } from "../../../values/sealed.ts";
import type { ConvertContext } from "../../exchange.ts";

/** The context that a wrapped id is bound to in addition to its account. */
const BINDING = "stored";
/**
 * What follows the kind in a wrapped id. Sealed items (`references/`) have no second dot, so the two cannot be
 * confused.
 */
export const WRAPPED_MARK = `_${SEALED_PREFIX}u.`;
const WRAPPED = new RegExp(`^([a-z]{1,16})${RegExp.escape(WRAPPED_MARK)}([A-Za-z0-9_-]{1,1400})$`);
/**
 * Ids that are longer or have other characters are not wrapped. They stay unchanged, and clients cannot refer to them.
 */
const WRAPPABLE = /^[A-Za-z0-9][A-Za-z0-9._:-]{0,255}$/;
/** Ids of the official service; stored as bytes, their hexadecimal digits take half of the room. */
const HEXADECIMAL = /^([a-z]{1,16}_)((?:[0-9a-f]{2}){8,64})$/;
const TEXT = 1;
const HEX = 2;
const SEPARATOR = "\0";

/** Whether a text has the form of a wrapped id; it need not open. */
export function isWrapped(id: unknown): id is string {
  return typeof id === "string" && WRAPPED.test(id);
}

function wrap({ upstream, model, id }: StoredName, context: Pick<ConvertContext, "sealAlike">): string {
  const [, prefix, digits] = HEXADECIMAL.exec(id) ?? [];
  const kind = digits === undefined ? TEXT : HEX;
  const last = digits === undefined ? Buffer.from(id) : Buffer.from(digits, "hex");
  const names = [upstream, model, ...(prefix === undefined ? [] : [prefix])];
  const named = Buffer.from(names.join(SEPARATOR) + SEPARATOR);
  const sealed = context.sealAlike(Buffer.concat([Buffer.of(kind), named, last]), BINDING);
  return `${kindOf(id)}${WRAPPED_MARK}${sealed.slice(SEALED_PREFIX.length)}`;
}

/** The kind of object that an id names; clients check it. */
function kindOf(id: string): string {
  return /^([a-z]{1,16})_/.exec(id)?.[1] ?? "item";
}

/** The content of a wrapped id; undefined if it belongs to another account, was changed, or is not a wrapped id. */
export function openStored(text: unknown, context: Pick<ConvertContext, "open">): StoredName | undefined {
  const [, kind, sealed] = (typeof text === "string" && WRAPPED.exec(text)) || [];
  if (sealed === undefined || !isAsWritten(sealed)) return undefined;
  const content = context.open(SEALED_PREFIX + sealed, BINDING);
  if (!content) return undefined;
  const name = content[0] === HEX ? hexName(content.subarray(1)) : textName(content.subarray(1));
  return name && kindOf(name.id) === kind ? name : undefined;
}

/**
 * Whether the text is the canonical base64url: decoders ignore the last bits and a superfluous digit, so one id would
 * have many forms.
 */
function isAsWritten(sealed: string): boolean {
  return Buffer.from(sealed, "base64url").toString("base64url") === sealed;
}

function textName(content: Uint8Array): StoredName | undefined {
  const [upstream, model, id] = Buffer.from(content).toString().split(SEPARATOR);
  return upstream === undefined || model === undefined || id === undefined ? undefined : { upstream, model, id };
}

function hexName(content: Uint8Array): StoredName | undefined {
  const buffer = Buffer.from(content);
  let from = 0;
  const names = [0, 1, 2].map(() => {
    const end = buffer.indexOf(0, from);
    const name = buffer.subarray(from, end).toString();
    from = end + 1;
    return name;
  });
  const [upstream, model, prefix] = names as [string, string, string];
  return { upstream, model, id: prefix + buffer.subarray(from).toString("hex") };
}

/** The wrapped ids of one reply. */
export class WrappedIds {
  readonly #route: Pick<StoredName, "upstream" | "model">;
  readonly #context: Pick<ConvertContext, "sealAlike">;
  readonly #made = new Map<string, string>();
  /** The server's id of the response itself; undefined until it is known. */
  responseId: string | undefined;

  /**
   * @param route the upstream that keeps the objects, and the model that its client asked for.
   * @param asked the wrapped ids in the client's request; it gets the same ones back, even if an older sealing key made
   * them.
   */
  constructor(
    route: Pick<StoredName, "upstream" | "model">,
    context: Pick<ConvertContext, "sealAlike">,
    asked?: Pick<StoredNames, "names">,
  ) {
    this.#route = route;
    this.#context = context;
    for (const [wrapped, name] of asked?.names ?? []) {
      if (name?.upstream === route.upstream) this.#made.set(name.id, wrapped);
    }
  }

  /** @returns what the client gets in place of the server's id; undefined: the id itself. */
  of(id: unknown): string | undefined {
    if (typeof id !== "string" || !WRAPPABLE.test(id)) return undefined;
    const known = this.#made.get(id);
    if (known !== undefined) return known;
    const { upstream, model } = this.#route;
    const wrapped = wrap({ upstream, model, id }, this.#context);
    this.#made.set(id, wrapped);
    return wrapped;
  }
}
