/** The messages, and for each answer its duration and cost. */
import { count, usd } from "../../parts/format.ts";
import { hrefOf } from "../../parts/router.ts";
import { html, type VNode } from "../../parts/view.ts";
import { T } from "../../texts/texts.ts";
import type { ShownTurn } from "./conversation.ts";

export function Turns({ turns }: { readonly turns: readonly ShownTurn[] }): VNode | null {
  if (turns.length === 0) return null;
  const words = T.owner.tryIt;
  return html`<section aria-label=${words.conversation}><ol class="conversation">${turns.map(
    (turn) => html`<li class=${turn.role}>
      <h2>${turn.role === "user" ? words.you : words.answer}</h2>
      ${turn.thinking && html`<details><summary>${words.thinking}</summary><div class="thought">${turn.thinking}</div></details>`}
      <div class="said" aria-busy=${turn.ending === "running"}>${turn.text}</div>
      ${turn.role === "assistant" && html`<${Ending} turn=${turn} /><${Facts} turn=${turn} />`}
    </li>`,
  )}</ol></section>`;
}

function Ending({ turn }: { readonly turn: ShownTurn }): VNode | null {
  const words = T.owner.tryIt;
  const { refused, failed, ending } = turn;
  if (refused) {
    return html`<div class="problem" role="alert">
      <p><strong>${refused.message}</strong></p>
      ${refused.remedy && html`<p>${refused.remedy}</p>`}
      <p><small>${words.refusedBy(String(refused.status), refused.cause)}</small></p>
    </div>`;
  }
  if (failed) return html`<div class="problem" role="alert"><p>${failed}</p></div>`;
  if (ending === "stopped") return html`<p class="faint">${words.stopped}</p>`;
  return ending === "cut" ? html`<div class="problem" role="alert"><p>${words.cut}</p></div>` : null;
}

function Facts({ turn }: { readonly turn: ShownTurn }): VNode {
  const words = T.owner.tryIt;
  const { firstMs, wholeMs, input, output, requestId } = turn;
  const tokens = input !== undefined || output !== undefined;
  const facts: readonly (readonly [string, string | VNode | false])[] = [
    [words.firstToken, firstMs !== undefined && words.ms(count(firstMs))],
    [words.whole, wholeMs !== undefined && words.ms(count(wholeMs))],
    [words.tokens, tokens && words.tokensInOut(count(input ?? 0), count(output ?? 0))],
    [words.cost, costOf(turn)],
    [
      words.request,
      requestId !== undefined && html`<a class="mono" href=${hrefOf(["usage", requestId])}>${requestId}</a>`,
    ],
  ];
  return html`<dl>${facts
    .filter(([, value]) => value !== false)
    .map(([title, value]) => html`<div><dt>${title}</dt><dd>${value}</dd></div>`)}</dl>`;
}

function costOf({ usd: amount }: ShownTurn): string | false {
  const words = T.owner.tryIt;
  if (amount === undefined) return false;
  if (amount === "coming") return words.costComing;
  return amount === "none" ? words.costUnknown : usd(amount);
}
