/**
 * The operator's rules on a body that is about to go upstream: members are dropped, set and filled in, system text is
 * added or cleaned. Only the members that a rule names change; every other byte stays as it came (ARCHITECTURE.md
 * promise 6).
 */
import type { RuleAction } from "../../values/rules.ts";
import type { JsonScan } from "../../wire/json.ts";
import { BodyDraft } from "./body-draft.ts";
import { addSystemText, type RewriteTarget, stripAttribution } from "./system.ts";

export type { RewriteTarget } from "./system.ts";

/**
 * Applies actions in their order; header edits are passed over.
 * @param body a valid body of the target's protocol: the client's own or a translated one.
 * @param scan of this very body, where there is one.
 * @returns the body itself when nothing changes.
 */
export function rewriteBody(
  body: Uint8Array,
  target: RewriteTarget,
  actions: readonly RuleAction[],
  scan?: JsonScan,
): Uint8Array {
  if (actions.every((action) => action.kind === "header")) return body;
  const draft = new BodyDraft(body, scan);
  for (const action of actions) apply(draft, action, target);
  return draft.finish();
}

function apply(draft: BodyDraft, action: RuleAction, target: RewriteTarget): void {
  if (action.kind === "drop") for (const path of action.paths) draft.drop(path);
  if (action.kind === "set") for (const { path, json } of action.members) draft.set(path, json);
  if (action.kind === "default") for (const { path, json } of action.members) draft.fillIn(path, json);
  if (action.kind === "system") addSystemText(draft, action, target);
  // The line exists in this protocol only.
  if (action.kind === "strip_attribution" && target.protocol === "messages") stripAttribution(draft);
}
