/**
 * The objects that a conversation is made of, in every protocol: messages, items, content parts, sources, and the tools
 * that some of them carry. What is data (tool inputs, schemas, metadata) is not entered.
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

/** An object of the conversation, and the name of the member that holds it: one of its parent, or of the root. */
export interface Met {
  readonly node: JsonObject;
  readonly under: string;
}

/** Called for each object: with its names one by one, then with the object. */
export interface Visitor {
  name(name: string, under: string): void;
  object(met: Met): void;
}

/**
 * Shows the visitor every object of the conversation, each once. The walk is iterative, since the depth is the
 * client's; it trusts no shape. Names are gone through once, since objects of many shapes are slow to ask for members
 * that they lack.
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

/** The member of a value that may not be an object. */
export function member(value: unknown, name: string): unknown {
  return isObject(value) ? value[name] : undefined;
}
