/** One request by its id: what was charged, how it is computed, and the attempts. */
import type { OwnChargeAnswer, OwnLineAnswer, OwnRequestAnswer, OwnTryAnswer } from "../../../answers/own-usage.ts";
import { count, instant, usd } from "../../parts/format.ts";
import { useAnswer } from "../../parts/load.ts";
import { hrefOf } from "../../parts/router.ts";
import { html, useState, type VNode } from "../../parts/view.ts";
import {
  AttemptWord,
  Awaited,
  attemptWord,
  Button,
  CopyButton,
  Figure,
  Table,
  type TableColumn,
} from "../../parts/widgets.ts";
import { T } from "../../texts/texts.ts";
import type { KeyNames } from "../key-names.ts";
import { payingCard } from "./paying-card.ts";

interface RequestDetailsProps {
  readonly id: string;
  readonly keyNames: KeyNames;
}

export function RequestDetails({ id, keyNames }: RequestDetailsProps): VNode {
  const words = T.owner.request;
  const [after, setAfter] = useState<number | undefined>(undefined);
  const loaded = useAnswer<OwnRequestAnswer>(
    `/requests/${encodeURIComponent(id)}${after === undefined ? "" : `?after=${after}`}`,
  );
  return html`<p><a href=${hrefOf(["usage"], { by: "requests" })}>← ${words.back}</a></p>
    <h1>${words.title}</h1>
    <p class="row"><code>${id}</code> <${CopyButton} text=${id} /></p>
    <${Awaited} loaded=${loaded}>${(data: OwnRequestAnswer) =>
      data.next === null
        ? html`<${Found} answer=${data} keyNames=${keyNames} />`
        : html`<p role="status">${words.searching}</p>
          <${Button} isRunning=${loaded.isLoading} onClick=${() => setAfter(data.next ?? undefined)}>${words.goOn}</${Button}>`}</${Awaited}>`;
}

function Found({ answer, keyNames }: { readonly answer: OwnRequestAnswer; readonly keyNames: KeyNames }): VNode {
  const words = T.owner.request;
  const { line, tries, cause } = answer;
  return html`${
    line
      ? html`<${Charged} line=${line} keyNames=${keyNames} />`
      : html`<div class="panel"><h2>${words.notCharged}</h2><p>${words.nothing} ${cause && words.nothingWhy(attemptWord(cause))}</p></div>`
  }
  <div class="panel"><h2>${words.tries}</h2>
    <${Table} caption=${words.tries} columns=${TRY_COLUMNS()} rows=${tries.map((one, at) => ({ ...one, at: at + 1 }))}
      keyOf=${(one: NumberedTry) => String(one.at)} empty=${words.noTries} />
  </div>`;
}

type NumberedTry = OwnTryAnswer & { readonly at: number };

const TRY_COLUMNS = (): readonly TableColumn<NumberedTry>[] => {
  const words = T.owner.request;
  return [
    { title: words.try, cell: ({ at }) => String(at) },
    { title: words.outcome, cell: ({ outcome }) => html`<${AttemptWord} of=${outcome} />` },
    { title: words.status, cell: ({ status }) => (status === null ? "–" : String(status)) },
    { title: words.reason, cell: ({ why }) => html`<${AttemptWord} of=${why} />` },
    { title: words.paid, cell: ({ charged }) => (charged ? words.yes : words.no) },
  ];
};

function Charged({ line, keyNames }: { readonly line: OwnLineAnswer; readonly keyNames: KeyNames }): VNode {
  const words = T.owner.request;
  const { charge } = line;
  const card = payingCard(line);
  const payer = card === undefined ? words.balance : words.card(card);
  const facts: readonly (readonly [string, string])[] = [
    [words.model, line.model],
    [words.group, line.group],
    [words.key, keyNames.get(line.key)?.name ?? line.key],
    [words.paidBy, payer],
    [words.written, instant(line.at)],
  ];
  return html`<dl class="figures">
      <${Figure} title=${words.charged}>${usd(line.usd)}</${Figure}>
      ${charge && html`<${Figure} title=${words.heldAtEnd} hint=${charge.held_dearest ? words.heldDearest : undefined}>${usd(charge.hold_usd)}</${Figure}>`}
      <${Figure} title=${words.balanceAfter}>${usd(line.balance_usd)}</${Figure}>
    </dl>
    <dl class="facts panel">${facts.map(([title, text]) => html`<div><dt>${title}</dt><dd><bdi>${text}</bdi></dd></div>`)}</dl>
    <div class="panel"><h2>${words.how}</h2>
      ${charge ? html`<${Sum} charge=${charge} group=${line.group} />` : html`<p>${words.noFigures}</p>`}
    </div>`;
}

type SumRow = OwnChargeAnswer["tokens"][number] & { readonly isCall: boolean };

function Sum({ charge, group }: { readonly charge: OwnChargeAnswer; readonly group: string }): VNode {
  const words = T.owner.request;
  const rows: readonly SumRow[] = [
    ...charge.tokens.filter((one) => one.count > 0).map((one) => ({ ...one, isCall: false })),
    ...charge.calls.map((one) => ({ ...one, isCall: true })),
  ];
  const columns: readonly TableColumn<SumRow>[] = [
    {
      title: words.kind,
      cell: ({ kind, isCall }) => (isCall ? kind : (words.kinds[kind as keyof typeof words.kinds] ?? kind)),
    },
    { title: words.count, isNumber: true, cell: (row) => count(row.count) },
    {
      title: words.price,
      isNumber: true,
      cell: (row) => usd(row.price_usd),
      below: (row) => (row.isCall ? words.perCall : words.perMillion),
    },
    { title: words.product, isNumber: true, cell: (row) => usd(row.usd) },
  ];
  return html`<p class="hint">${words.howHint}</p>
    <${Table} caption=${words.how} columns=${columns} rows=${rows} keyOf=${(row: SumRow) => row.kind} empty=${words.noFigures} />
    <ul class="steps">${sentences(charge, group).map((sentence) => html`<li>${sentence}</li>`)}</ul>`;
}

/** The reasons for the amount, one sentence each. */
function sentences(charge: OwnChargeAnswer, group: string): readonly string[] {
  const words = T.owner.request;
  const { ended, counted } = charge;
  const end =
    ended === "other" || !(ended in words.ended)
      ? words.ended.other(attemptWord(ended))
      : words.ended[ended as "complete"];
  return [
    ...(charge.reasoning_tokens > 0 ? [words.reasoning(count(charge.reasoning_tokens))] : []),
    ...(charge.tier === null ? [] : [words.tier(charge.tier)]),
    words.multiplier(charge.multiplier, group),
    `${words.computed(usd(charge.computed_usd))} ${words.why[charge.why]}`,
    counted === "upstream" ? words.counted.upstream : words.counted.estimate,
    end,
    ...(charge.left_too_often ? [words.leftTooOften] : []),
  ];
}
