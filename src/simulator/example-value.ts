/** The smallest plausible value of a JSON schema: what a simulated tool call passes and a structured reply holds. */

import { object } from "./conversation.ts";

/** Schemas that refer to themselves end here. */
const DEPTH_MAX = 8;

/** A value that fits the schema in the ordinary cases (types, required members, enum, const, defaults, anyOf, $ref). */
export function exampleValue(schema: unknown, root: unknown = schema, depth = 0): unknown {
  const rules = object(schema);
  if (depth > DEPTH_MAX) return null;
  if (typeof rules.$ref === "string") return exampleValue(resolve(root, rules.$ref), root, depth + 1);
  if ("const" in rules) return rules.const;
  if ("default" in rules) return rules.default;
  if (Array.isArray(rules.enum)) return rules.enum[0];
  const choices = rules.anyOf ?? rules.oneOf ?? rules.allOf;
  if (Array.isArray(choices)) return exampleValue(choices[0], root, depth + 1);
  const type = Array.isArray(rules.type) ? rules.type[0] : rules.type;
  if (type === "string") return "simulated";
  if (type === "integer" || type === "number") return typeof rules.minimum === "number" ? rules.minimum : 1;
  if (type === "boolean") return true;
  if (type === "null") return null;
  if (type === "array") return rules.items === undefined ? [] : [exampleValue(rules.items, root, depth + 1)];
  return exampleObject(rules, root, depth);
}

function exampleObject(rules: Readonly<Record<string, unknown>>, root: unknown, depth: number): object {
  const members = object(rules.properties);
  const names = Array.isArray(rules.required) ? rules.required.map(String) : Object.keys(members);
  return Object.fromEntries(names.map((name) => [name, exampleValue(members[name], root, depth + 1)]));
}

function resolve(root: unknown, reference: string): unknown {
  return reference
    .replace(/^#\//, "")
    .split("/")
    .reduce<unknown>((value, name) => object(value)[name], root);
}
