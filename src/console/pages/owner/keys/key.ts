/** The page of one key: its facts, limits and spend, and all actions on it. */
import type { ListedKeyAnswer } from "../../../answers/answers.ts";
import type { KeyGroupsAnswer, KeySpendAnswer } from "../../../answers/own.ts";
import { fromNow, instant, usd } from "../../parts/format.ts";
import { useAnswer } from "../../parts/load.ts";
import { hrefOf } from "../../parts/router.ts";
import { html, type VNode } from "../../parts/view.ts";
import { Awaited, CopyButton, Figure } from "../../parts/widgets.ts";
import { T } from "../../texts/texts.ts";
import { BudgetMeters } from "../budget-meters.ts";
import { LimitsPanel } from "./limits.ts";
import { KeyStatus } from "./list.ts";
import { PausePanel, RevokePanel } from "./pause.ts";
import { RotatePanel } from "./rotate.ts";
import { ExpiryPanel, GroupPanel, NamePanel } from "./settings.ts";

const W = T.owner.keys;

export function KeyPage({ id }: { id: string }): VNode {
  const key = useAnswer<ListedKeyAnswer>(`/keys/${encodeURIComponent(id)}`);
  const spend = useAnswer<KeySpendAnswer>("/key-spend");
  const groups = useAnswer<KeyGroupsAnswer>("/key-groups");
  return html`<p><a href=${hrefOf(["keys"])}>← ${W.back}</a></p>
    <${Awaited} loaded=${key}>${(data: ListedKeyAnswer) => html`
      <div class="row"><h1 dir="auto">${data.name ?? W.unnamed}</h1><${KeyStatus} of=${data} /></div>
      <${Facts} of=${data} spend=${spend.data} />
      ${
        data.budgets.length > 0 &&
        html`<section class="panel"><h2>${W.budgets}</h2><${BudgetMeters} budgets=${data.budgets} /></section>`
      }
      ${
        data.status === "revoked"
          ? html`<p class="note warn">${W.isRevoked}</p>`
          : html`<${Panels} of=${data} groups=${groups.data} onChanged=${key.reload} />`
      }`}</${Awaited}>`;
}

interface PanelsProps {
  readonly of: ListedKeyAnswer;
  readonly groups: KeyGroupsAnswer | undefined;
  readonly onChanged: () => void;
}

function Panels({ of: key, groups, onChanged }: PanelsProps): VNode {
  return html`<div class="panels wide">
      <${NamePanel} of=${key} onChanged=${onChanged} />
      <${ExpiryPanel} of=${key} onChanged=${onChanged} />
    </div>
    ${groups && html`<${GroupPanel} of=${key} groups=${groups.items} onChanged=${onChanged} />`}
    <${LimitsPanel} of=${key} onChanged=${onChanged} />
    <${RotatePanel} of=${key} groups=${groups} onChanged=${onChanged} />
    <div class="panels wide">
      <${PausePanel} of=${key} onChanged=${onChanged} />
      <${RevokePanel} of=${key} onChanged=${onChanged} />
    </div>`;
}

function Facts({ of: key, spend }: { of: ListedKeyAnswer; spend: KeySpendAnswer | undefined }): VNode {
  const spent = spend?.items.find(({ key_id }) => key_id === key.id);
  const { last_used: use } = key;
  const origin = use && [use.from && W.from(use.from), use.by && W.by(use.by)].filter(Boolean).join(" ");
  return html`<p class="row"><span class="mono">${key.id}</span><${CopyButton} text=${key.id} label=${`${T.common.copy}${T.common.colon}${key.id}`} /></p>
    <dl class="figures small">
      <${Figure} title=${W.group}>${key.group}</${Figure}>
      <${Figure} title=${W.spend} hint=${spend && W.todayOf(usd(spent?.today_usd ?? "0.00"))}>${spend ? usd(spent?.usd ?? "0.00") : "…"}</${Figure}>
      <${Figure} title=${W.lastUsed} hint=${origin}>${use ? fromNow(use.at) : T.common.never}</${Figure}>
      <${Figure} title=${W.expires} hint=${key.expires_at && fromNow(key.expires_at)}>${key.expires_at ? instant(key.expires_at) : T.common.never}</${Figure}>
      <${Figure} title=${W.created}>${instant(key.created_at)}</${Figure}>
      ${
        key.previous_until &&
        Date.parse(key.previous_until) > Date.now() &&
        html`<${Figure} title=${W.previousUntil} hint=${fromNow(key.previous_until)}>${instant(key.previous_until)}</${Figure}>`
      }
    </dl>`;
}
