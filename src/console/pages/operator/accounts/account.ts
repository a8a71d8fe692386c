/** The page of one account: its balance, actions, cards, keys and ledger. */
import type { AccountWithCardsAnswer, ListedTimeCardAnswer } from "../../../answers/answers.ts";
import { instant, usd } from "../../parts/format.ts";
import { useAnswer } from "../../parts/load.ts";
import { hrefOf } from "../../parts/router.ts";
import { html, useState, type VNode } from "../../parts/view.ts";
import { Awaited, Figure, Table } from "../../parts/widgets.ts";
import { T } from "../../texts/texts.ts";
import { State } from "../common/words.ts";
import { Keys } from "../keys/keys.ts";
import { Ledger } from "../records/ledger.ts";
import type { OperatorPageProps } from "../session.ts";
import { AccountActions } from "./actions.ts";
import { Budgets } from "./budgets.ts";

const W = T.operator.accounts;

interface AccountProps {
  readonly session: OperatorPageProps["session"];
  readonly name: string;
}

export function AccountPage({ session, name }: AccountProps): VNode {
  const account = useAnswer<AccountWithCardsAnswer>(`/accounts/${encodeURIComponent(name)}`);
  // The ledger is loaded again after each write, which may have added a line.
  const [turn, setTurn] = useState(0);
  const done = () => {
    account.reload();
    setTurn((old: number) => old + 1);
  };
  return html`<p><a href=${hrefOf(["accounts"])}>← ${W.title}</a></p>
    ${account.refused && !account.data && html`<h1>${name}</h1>`}
    <${Awaited} loaded=${account}>${(data: AccountWithCardsAnswer) => html`
      <div class="row"><h1>${data.name}</h1><${State} of=${data.status} /></div>
      <p class="faint">${W.facts(data.plan, instant(data.created_at), data.id)}</p>
      <dl class="figures">
        <${Figure} title=${W.balance}>${usd(data.balance_usd)}</${Figure}>
        <${Figure} title=${W.available} hint=${W.held(usd(data.held_usd))}>${usd(data.available_usd)}</${Figure}>
        <${Figure} title=${W.spent} hint=${W.toppedUp(usd(data.topped_up_usd))}>${usd(data.spent_usd)}</${Figure}>
        <${Figure} title=${W.noticeBelow}>${data.notify_below_usd === null ? W.asConfigured : usd(data.notify_below_usd)}</${Figure}>
      </dl>
      <${AccountActions} account=${data} session=${session} onDone=${done} />
      ${Object.keys(data.labels).length > 0 && html`<p>${W.labels}${T.common.colon}${Object.entries(data.labels).map(([label, value]) => html`<span class="badge label">${label}=<bdi>${value}</bdi></span> `)}</p>`}
      <${Budgets} uses=${data.budgets} />
      <section><h2>${W.cards}</h2><${Cards} of=${data} /></section>
      <${Keys} account=${data} session=${session} />`}</${Awaited}>
    ${account.data && html`<section><h2>${W.ledger}</h2><${Ledger} key=${turn} account=${name} /></section>`}`;
}

const CARD_COLUMNS = [
  { title: W.card, cell: (row: ListedTimeCardAnswer) => row.card ?? "–" },
  { title: T.operator.state, cell: (row: ListedTimeCardAnswer) => html`<${State} of=${row.state} />` },
  { title: T.operator.group, cell: (row: ListedTimeCardAnswer) => row.group },
  { title: T.operator.plan, cell: (row: ListedTimeCardAnswer) => row.plan },
  { title: W.from, cell: (row: ListedTimeCardAnswer) => instant(row.from) },
  { title: W.until, cell: (row: ListedTimeCardAnswer) => instant(row.until) },
  { title: W.cardSpent, cell: (row: ListedTimeCardAnswer) => usd(row.spent_usd), isNumber: true },
  {
    title: W.rest,
    cell: (row: ListedTimeCardAnswer) => (row.rest_usd === null ? W.noQuota : usd(row.rest_usd)),
    isNumber: true,
  },
];

function Cards({ of: account }: { of: AccountWithCardsAnswer }): VNode {
  // A closed account can get neither a card nor a code.
  const empty = account.status === "closed" ? W.noCardsClosed : W.noCards;
  return html`<${Table} caption=${W.cards} columns=${CARD_COLUMNS} rows=${account.entitlements} keyOf=${(row: ListedTimeCardAnswer) => row.id} empty=${empty} />`;
}
