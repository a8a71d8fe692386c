/**
 * What a stateful responses server keeps: responses by id, and the items of their input and output. Needed for
 * `previous_response_id`, for references, and for the endpoints that read and delete responses. As on real servers,
 * everybody with the credential has access.
 */
import { type JsonObject, objectOf } from "../values/json-object.ts";
import { list } from "./conversation.ts";
import { idFrom } from "./ids.ts";

interface Kept {
  readonly response: JsonObject;
  /** Everything that was read for it, including earlier responses. */
  readonly input: readonly JsonObject[];
}

interface KeptItem {
  readonly item: JsonObject;
  /** How often the items of kept responses have this id. */
  readonly uses: number;
}

/** The oldest are deleted first. */
const KEPT_MAX = 1_000;

export class KeptResponses {
  readonly #responses = new Map<string, Kept>();
  readonly #items = new Map<string, KeptItem>();

  /** The request with everything that it refers to inserted, or the refusal. */
  filled(request: JsonObject): { readonly request: JsonObject } | { readonly problem: string; readonly param: string } {
    const previous = request.previous_response_id;
    const kept = typeof previous === "string" ? this.#responses.get(previous) : undefined;
    if (typeof previous === "string" && !kept) {
      const problem = `Previous response with id '${previous}' not found.`;
      return { problem, param: "previous_response_id" };
    }
    const own = typeof request.input === "string" ? [{ role: "user", content: request.input }] : list(request.input);
    const input: JsonObject[] = [];
    for (const item of own) {
      const isEmpty = item.type === "reasoning" && item.encrypted_content === undefined;
      const isReference = item.type === "item_reference" || isEmpty;
      const named = isReference && typeof item.id === "string" ? this.#items.get(item.id)?.item : item;
      if (!named) return { problem: `Item with id '${item.id}' not found.`, param: "input" };
      input.push(named);
    }
    const before = kept ? [...kept.input, ...list(kept.response.output)] : [];
    return { request: { ...request, input: [...before, ...input] } };
  }

  /** @param request as returned by `filled`. */
  keep(request: JsonObject, response: JsonObject): void {
    const id = String(response.id);
    const input = list(request.input).map((item, index) =>
      typeof item.id === "string" ? item : { ...item, id: idFrom(id, "msg_", index) },
    );
    const replaced = this.#responses.get(id);
    const kept = { response, input };
    this.#responses.set(id, kept);
    for (const item of itemsOf(kept)) {
      const itemId = String(item.id);
      this.#items.set(itemId, { item, uses: (this.#items.get(itemId)?.uses ?? 0) + 1 });
    }
    if (replaced) this.#release(replaced);
    if (this.#responses.size > KEPT_MAX) this.#remove(this.#responses.keys().next().value as string);
  }

  #remove(id: string): void {
    const kept = this.#responses.get(id);
    this.#responses.delete(id);
    if (kept) this.#release(kept);
  }

  /** Removes the items of a response, except those that other kept responses have too. */
  #release(kept: Kept): void {
    for (const { id } of itemsOf(kept)) {
      const itemId = String(id);
      const found = this.#items.get(itemId);
      if (found && found.uses > 1) this.#items.set(itemId, { ...found, uses: found.uses - 1 });
      else this.#items.delete(itemId);
    }
  }

  /** Ids of the responses, oldest first. */
  ids(): readonly string[] {
    return [...this.#responses.keys()];
  }

  /** The answer at the path of a response; undefined: 404. */
  answer(method: string, path: string, query: URLSearchParams): object | "not_cancellable" | undefined {
    const [, id = "", action] = /^\/v1\/responses\/([^/]+)(?:\/([a-z_]+))?$/.exec(path) ?? [];
    const kept = this.#responses.get(id);
    if (!kept) return undefined;
    if (method === "POST" && action === "cancel") return "not_cancellable";
    if (method === "DELETE" && action === undefined) {
      this.#remove(id);
      return { id, object: "response", deleted: true };
    }
    if (method !== "GET") return undefined;
    if (action === "input_items") return page(kept.input, query);
    return action === undefined ? kept.response : undefined;
  }
}

function itemsOf({ input, response }: Kept): readonly JsonObject[] {
  return [...input, ...list(response.output)];
}

function page(items: readonly JsonObject[], query: URLSearchParams): object {
  const after = query.get("after");
  const from = after === null ? 0 : items.findIndex(({ id }) => id === after) + 1;
  const to = from + Number(query.get("limit") ?? 20);
  const data = items.slice(from, to);
  const ends = { first_id: objectOf(data[0])?.id ?? null, last_id: objectOf(data.at(-1))?.id ?? null };
  return { object: "list", data, ...ends, has_more: to < items.length };
}
