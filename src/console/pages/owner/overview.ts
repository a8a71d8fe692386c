/** What an account has, what runs out soon, and what it has spent. */
import type { AccountWithCardsAnswer } from "../../answers/answers.ts";
import { usd } from "../parts/format.ts";
import { useAnswer } from "../parts/load.ts";
import { html, type VNode } from "../parts/view.ts";
import { Awaited, Figure } from "../parts/widgets.ts";
import { T } from "../texts/texts.ts";
import type { PageProps } from "./session.ts";

export function Overview({ session }: PageProps): VNode {
  const account = useAnswer<AccountWithCardsAnswer>(`/accounts/${encodeURIComponent(session.account)}`);
  return html`<h1>${T.owner.overview.title}</h1>
    <${Awaited} loaded=${account}>${(data: AccountWithCardsAnswer) => html`<dl class="figures">
      <${Figure} title=${T.owner.overview.balance}>${usd(data.balance_usd)}</${Figure}>
      <${Figure} title=${T.owner.overview.held} hint=${T.owner.overview.heldHint}>${usd(data.held_usd)}</${Figure}>
    </dl>`}</${Awaited}>`;
}
