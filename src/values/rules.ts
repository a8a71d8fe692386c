/**
 * The operator's rules for requests upstream, compiled from the configuration: plain data that `convert/rewrite/`
 * applies to bodies and dispatch to headers, and that can be printed unchanged.
 */
import type { Protocol } from "./protocol.ts";
import type { Secret } from "./secret.ts";

/** The path of a member in a body: the names from the top, in the spelling of the upstream's protocol. */
export type MemberPath = readonly string[];

/** A member and the JSON text that it gets. */
export interface Assignment {
  readonly path: MemberPath;
  readonly json: string;
}

/** Request headers to remove, then those to set; names in lowercase. */
export interface HeaderEdits {
  readonly remove: readonly string[];
  readonly add: readonly { readonly name: string; readonly value: Secret }[];
}

export type RuleAction =
  | { readonly kind: "drop"; readonly paths: readonly MemberPath[] }
  /** Overrides the client's value. */
  | { readonly kind: "set"; readonly members: readonly Assignment[] }
  /** Only if the client sent no value, or null. */
  | { readonly kind: "default"; readonly members: readonly Assignment[] }
  /** Before or after the client's own system text. */
  | { readonly kind: "system"; readonly text: string; readonly at: "start" | "end" }
  | { readonly kind: "header"; readonly edits: HeaderEdits }
  /** Removes Claude Code's volatile attribution line from the system text (docs/translation-rules.md rule 11). */
  | { readonly kind: "strip_attribution" };

export interface Rule {
  /** The only protocol whose upstreams the rule applies to; undefined: all. */
  readonly protocol: Protocol | undefined;
  readonly action: RuleAction;
}

/** An object that has rules. */
export interface Ruled {
  readonly rules: readonly Rule[];
}

/**
 * The actions for an upstream of this protocol, in the order in which they are applied.
 * @param owners for an attempt: the group, the model and the route (which carries its upstream's rules), in this order.
 *   Later ones override earlier ones.
 */
export function actionsFor(owners: readonly Ruled[], protocol: Protocol): RuleAction[] {
  const actions: RuleAction[] = [];
  for (const { rules } of owners) {
    for (const rule of rules) {
      if (rule.protocol === undefined || rule.protocol === protocol) actions.push(rule.action);
    }
  }
  return actions;
}

/** The header edits among actions, in their order. */
export function headerEdits(actions: readonly RuleAction[]): HeaderEdits[] {
  return actions.flatMap((action) => (action.kind === "header" ? [action.edits] : []));
}

/** The most JSON that is added around an injected system text: a message of its own, and the comma before it. */
const SYSTEM_FRAME_BYTES = 64;
/** Quotes, colon and comma of a new member. */
const MEMBER_FRAME_BYTES = 4;

/**
 * The most bytes that actions can add to a body: they are added to the estimate of the input (ARCHITECTURE.md promise
 * 1).
 */
export function addedBytes(actions: readonly RuleAction[]): number {
  return actions.reduce((total, action) => total + addedByAction(action), 0);
}

function addedByAction(action: RuleAction): number {
  if (action.kind === "system") return Buffer.byteLength(JSON.stringify(action.text)) + SYSTEM_FRAME_BYTES;
  if (action.kind !== "set" && action.kind !== "default") return 0;
  return action.members.reduce(
    (total, { path, json }) =>
      total +
      Buffer.byteLength(json) +
      // Every name of the path may be new, with braces around its value.
      path.reduce((names, name) => names + Buffer.byteLength(name) + MEMBER_FRAME_BYTES + 2, 0),
    0,
  );
}
