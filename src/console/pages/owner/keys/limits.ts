/** The limits of a key that its owner sets, with the operator's caps next to them. */
import type { KeyAnswer } from "../../../answers/answers.ts";
import { ApiError, ask } from "../../parts/api.ts";
import { count, usd } from "../../parts/format.ts";
import { html, useRef, useState, type VNode } from "../../parts/view.ts";
import { Field } from "../../parts/widgets.ts";
import { T } from "../../texts/texts.ts";
import { bodyOf, type KeyLimits, LISTS, RATES, SPANS, type TypedLimits, typedOf } from "./limit-words.ts";
import { Setting } from "./settings.ts";

const W = T.owner.keys;

interface LimitsPanelProps {
  readonly of: KeyAnswer;
  readonly onChanged: () => void;
}

export function LimitsPanel({ of: key, onChanged }: LimitsPanelProps): VNode {
  const [typed, setTyped] = useState(() => typedOf(key.limits));
  const begun = useRef(JSON.stringify(key.limits));
  const save = async () => {
    // All limits are replaced at once: do not overwrite a change that another person made in the meantime.
    const now = await ask<KeyAnswer>(`/keys/${key.id}`);
    if (JSON.stringify(now.limits) !== begun.current) {
      throw new ApiError(409, "changed_elsewhere", W.changedElsewhere, W.changedElsewhereRemedy);
    }
    const path = `/keys/${key.id}/limits`;
    const saved = await ask<KeyAnswer>(path, { method: "PUT", body: bodyOf(typed) }).catch(byField);
    begun.current = JSON.stringify(saved.limits);
    setTyped(typedOf(saved.limits));
    onChanged();
  };
  const one = (name: keyof TypedLimits) => ({
    typed: typed[name],
    onType: (text: string) => setTyped((old) => ({ ...old, [name]: text })),
    cap: capOf(key.caps, name),
  });
  return html`<${Setting} title=${W.limitsTitle} work=${save}>
    <p class="hint">${W.limitsHint}</p>
    <fieldset><legend class="faint">${W.budgetLegend}</legend><div class="fields">${SPANS.map(
      (span) =>
        html`<${LimitField} key=${span} label=${W.spans[span]} hint=${W.budgetHints[span]} ...${one(span)} mode="decimal" />`,
    )}</div></fieldset>
    <fieldset><legend class="faint">${W.rateLegend}</legend><div class="fields">${RATES.map(
      (rate) => html`<${LimitField} key=${rate} label=${RATE_LABELS[rate]} ...${one(rate)} mode="numeric" />`,
    )}</div></fieldset>
    <fieldset><legend class="faint">${W.scopeLegend}</legend><div class="fields">${LISTS.map(
      (list) =>
        html`<${LimitField} key=${list} label=${LIST_LABELS[list]} hint=${LIST_HINTS[list]} ...${one(list)} isList />`,
    )}</div></fieldset>
  </${Setting}>`;
}

/** Names the field in place of the API's member if its amount or number was refused. */
function byField(error: unknown): never {
  if (!(error instanceof ApiError) || error.code !== "malformed") throw error;
  const [, name] = /^`?(?:budgets_usd\.)?(\w+)`? must be/.exec(error.message) ?? [];
  const [, most] = / from 1 to (\d+)/.exec(error.message) ?? [];
  const span = SPANS.find((one) => one === name);
  const rate = RATES.find((one) => one === name);
  const wrong = span ? W.badBudget(W.spans[span]) : rate && most && W.badRate(RATE_LABELS[rate], count(Number(most)));
  throw wrong ? new ApiError(400, "bad_limit", wrong, "") : error;
}

const RATE_LABELS = { requests_per_minute: W.requests, tokens_per_minute: W.tokens, concurrency: W.concurrency };
const LIST_LABELS = { models: W.modelNames, addresses: W.addresses };
const LIST_HINTS = { models: W.modelNamesHint, addresses: W.addressesHint };

/** The operator's cap, as text. */
function capOf(caps: KeyLimits, name: keyof TypedLimits): string | undefined {
  const { budgets_usd, requests_per_minute, tokens_per_minute, concurrency, models, addresses } = caps;
  const rates = { requests_per_minute, tokens_per_minute, concurrency };
  if (name === "models" || name === "addresses") return { models, addresses }[name]?.join(", ");
  if (name in rates) {
    const most = rates[name as keyof typeof rates];
    return most === null ? undefined : count(most);
  }
  const most = budgets_usd[name as keyof typeof budgets_usd];
  return most === null ? undefined : usd(most);
}

interface LimitFieldProps {
  readonly label: string;
  readonly hint?: string;
  readonly cap: string | undefined;
  readonly typed: string;
  readonly onType: (text: string) => void;
  readonly mode?: "decimal" | "numeric";
  readonly isList?: boolean;
}

function LimitField({ label, hint, cap, typed, onType, mode, isList = false }: LimitFieldProps): VNode {
  const said = [hint, cap && W.cap(cap)].filter(Boolean).join(" · ");
  const type = (event: Event) => onType((event.target as HTMLInputElement).value);
  return html`<${Field} label=${label} hint=${said || undefined}>${({
    id,
    describedBy,
  }: {
    id: string;
    describedBy?: string;
  }) =>
    isList
      ? html`<textarea id=${id} class="mono" rows="3" spellcheck=${false} aria-describedby=${describedBy} value=${typed} onInput=${type}></textarea>`
      : html`<input id=${id} inputmode=${mode} autocomplete="off" aria-describedby=${describedBy} value=${typed} onInput=${type} />`}</${Field}>`;
}
