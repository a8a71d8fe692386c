/** Time cards: redeem a code, and list the cards with their ends and successors. */
import type { RedemptionAnswer } from "../../../answers/answers.ts";
import type { CardListAnswer } from "../../../answers/own.ts";
import { ApiError, ask } from "../../parts/api.ts";
import { instant } from "../../parts/format.ts";
import { useAction, useAnswer } from "../../parts/load.ts";
import { html, useState, type VNode } from "../../parts/view.ts";
import { Awaited, Button, Field, Form } from "../../parts/widgets.ts";
import { T } from "../../texts/texts.ts";
import type { PageProps } from "../session.ts";
import { CardGroups } from "./card-groups.ts";

const W = T.owner.cards;

export function Cards({ session }: PageProps): VNode {
  const account = `/accounts/${encodeURIComponent(session.account)}`;
  const cards = useAnswer<CardListAnswer>(`${account}/cards`);
  return html`<h1>${W.title}</h1>
    <section class="panel"><h2>${W.redeem}</h2><${Redeem} account=${account} onRedeemed=${cards.reload} /></section>
    <section class="panel">
      <h2>${W.list}</h2>
      <p class="faint">${W.listHint}</p>
      <${Awaited} loaded=${cards}>${({ items }: CardListAnswer) =>
        items.length === 0 ? html`<p class="empty">${W.none}</p>` : html`<${CardGroups} cards=${items} />`}</${Awaited}>
    </section>`;
}

/** The typed code stays until it is redeemed, so that a typo can be corrected. */
function Redeem({ account, onRedeemed }: { account: string; onRedeemed: () => void }): VNode {
  const [code, setCode] = useState("");
  const [done, setDone] = useState<RedemptionAnswer | undefined>(undefined);
  const action = useAction(async () => {
    setDone(undefined);
    if (code.trim() === "") throw new ApiError(0, "no_code", W.noCode, "");
    const answer = await ask<RedemptionAnswer>(`${account}/redemptions`, { method: "POST", body: { code } }).catch(
      notACode,
    );
    setDone(answer);
    setCode("");
    onRedeemed();
  });
  const typed = (event: Event) => setCode((event.target as HTMLInputElement).value);
  return html`<${Form} action=${action} onSubmit=${() => action.run()}>
    <${Field} label=${W.code} hint=${W.codeHint}>${({
      id,
      describedBy,
    }: {
      id: string;
      describedBy: string;
    }) => html`<input
      id=${id}
      class="mono"
      aria-describedby=${describedBy}
      value=${code}
      onInput=${typed}
      autocomplete="off"
      autocapitalize="characters"
      spellcheck=${false}
      placeholder="XXXX-XXXX-XXXX-XXXX-X"
    />`}</${Field}>
    <${Button} kind="main" isRunning=${action.isRunning}>${W.redeemNow}</${Button}>
    ${isLost(action.refused) && html`<p class="note">${W.lost}</p>`}
    <p role="status" class=${done ? "note" : undefined}>${done && said(done)}</p>
  </${Form}>`;
}

/** The gateway's answer for a text without the form of a code is about a member of its API. */
function notACode(error: unknown): never {
  if (error instanceof ApiError && error.code === "malformed") throw new ApiError(400, "no_code", W.notACode, "");
  throw error;
}

/** Whether the outcome is unknown. */
const isLost = (refused: ApiError | undefined) => refused?.code === "unreachable";

function said({ repeated, card, entitlement: { from, until } }: RedemptionAnswer): string {
  return repeated ? W.repeated(card, instant(until)) : W.redeemed(card, instant(from), instant(until));
}
