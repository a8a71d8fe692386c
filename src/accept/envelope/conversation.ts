/**
 * The objects of a conversation in every protocol: messages, items, content parts, sources, and the tools that some of
 * them carry. Data (tool inputs, schemas, metadata) is not entered.
 */
import { isObject, type JsonObject } from "../../values/json-object.ts";
import { HOLDERS } from "../../values/members/holders.ts";
import type { Protocol } from "../../values/protocol.ts";

/** The top-level members that hold the conversation. */
const ROOTS: Readonly<Record<Protocol, readonly string[]>> = {
  chat: ["messages", "prediction"],
  messages: ["messages", "system"],
  responses: ["input"],
};

const ENTERED: ReadonlySet<string> = new Set(HOLDERS);

/** An object of the conversation, and the name of the member that holds it, in its parent or at the root. */
export interface Met {
  readonly node: JsonObject;
  readonly under: string;
}

/** Called for each object: first with each of its names, then with the object. */
export interface Visitor {
  name(name: string, under: string): void;
  object(met: Met): void;
}

/**
 * Shows the visitor every object of the conversation, each once. The walk is iterative, because the client chooses the
 * depth, and it assumes no shape. It goes through the names once, because reading absent members of objects with many
 * different shapes is slow.
 */
export function visitConversation(protocol: Protocol, json: JsonObject, visitor: Visitor): void {
  for (const root of ROOTS[protocol]) visitUnder(json[root], root, visitor);
}

/** The same for one value, under the name of the member that holds it. */
export function visitUnder(root: unknown, holder: string, visitor: Visitor): void {
  const values: unknown[] = [root];
  const places: string[] = [holder];
  while (values.length > 0) {
    const value = values.pop();
    const under = places.pop() as string;
    if (Array.isArray(value)) {
      for (const item of value) {
        if (typeof item !== "object" || item === null) continue;
        values.push(item);
        places.push(under);
      }
      continue;
    }
    if (!isObject(value)) continue;
    for (const name in value) {
      visitor.name(name, under);
      if (!ENTERED.has(name)) continue;
      const held = value[name];
      if (typeof held !== "object" || held === null) continue;
      values.push(held);
      places.push(name);
    }
    visitor.object({ node: value, under });
  }
}

/** A member of a value that may not be an object. */
export function member(value: unknown, name: string): unknown {
  return isObject(value) ? value[name] : undefined;
}
