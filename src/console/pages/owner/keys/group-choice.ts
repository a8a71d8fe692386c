/** The choice of a group, with the facts of each. */
import type { KeyGroupAnswer } from "../../../answers/own.ts";
import { count } from "../../parts/format.ts";
import { html, useState, type VNode } from "../../parts/view.ts";
import { Badge } from "../../parts/widgets.ts";
import { T } from "../../texts/texts.ts";

const W = T.owner.keys;

interface GroupChoiceProps {
  readonly groups: readonly KeyGroupAnswer[];
  /** Empty: none yet. */
  readonly chosen: string;
  readonly onChoose: (group: string) => void;
  readonly hint?: string;
}

let choices = 0;

export function GroupChoice({ groups, chosen, onChoose, hint }: GroupChoiceProps): VNode {
  const [name] = useState(() => `group-choice-${++choices}`);
  return html`<fieldset class="choice">
    <legend>${W.chooseGroup}</legend>
    ${hint && html`<p class="hint">${hint}</p>`}
    ${groups.map(
      (group) => html`<label key=${group.name} class="option">
        <input type="radio" name=${name} value=${group.name} checked=${group.name === chosen} onChange=${() => onChoose(group.name)} />
        <span><strong>${group.name}</strong> <${GroupFacts} of=${group} /></span>
      </label>`,
    )}
  </fieldset>`;
}

function GroupFacts({ of: group }: { of: KeyGroupAnswer }): VNode {
  const { kind, falls_back, card_runs, multiplier, models } = group;
  const lacksCard = kind === "time_card" && !card_runs;
  return html`<${Badge} kind=${kind === "time_card" ? "good" : "plain"}>${W.kinds[kind]}</${Badge}>
    <small>${[falls_back && W.fallsBack, W.factor(multiplier), ...limitsOf(group)].filter(Boolean).join(" · ")}</small>
    ${lacksCard && html`<small class=${falls_back ? undefined : "wrong"}>${W.noCardRuns}</small>`}
    <small>${models.length === 0 ? W.noModels : html`${W.models(models.length)}${T.common.colon}<span class="mono">${models.join(", ")}</span>`}</small>`;
}

function limitsOf({ requests_per_minute, tokens_per_minute, concurrency }: KeyGroupAnswer): (string | false)[] {
  const words = W.groupLimits;
  return [
    requests_per_minute !== null && words.requests(count(requests_per_minute)),
    tokens_per_minute !== null && words.tokens(count(tokens_per_minute)),
    words.concurrency(count(concurrency)),
  ];
}
