/** Rules in the form of the file. */
import type { JsonObject } from "../../values/json-object.ts";
import type { Assignment, Rule, RuleAction } from "../../values/rules.ts";

/** Each rule in the form of the file, in the same order. */
export function writtenRules(rules: readonly Rule[]): readonly JsonObject[] {
  return rules.map(({ protocol, action }) => ({ protocol, ...writtenAction(action) }));
}

function writtenAction(action: RuleAction): JsonObject {
  switch (action.kind) {
    case "drop":
      return { drop: action.paths.map((path) => path.join(".")) };
    case "set":
      return { set: writtenMembers(action.members) };
    case "default":
      return { default: writtenMembers(action.members) };
    case "system":
      return { system: { text: action.text, at: action.at } };
    case "header": {
      const { add, remove } = action.edits;
      return {
        header: {
          add: add.length === 0 ? undefined : Object.fromEntries(add.map(({ name, value }) => [name, value])),
          remove: remove.length === 0 ? undefined : remove,
        },
      };
    }
    case "strip_attribution":
      return { strip_attribution: true };
  }
}

function writtenMembers(members: readonly Assignment[]): JsonObject {
  return Object.fromEntries(members.map(({ path, json }) => [path.join("."), JSON.parse(json) as unknown]));
}
