/** The ledger of an account, newest line first, or its lines of one request, each with what it was computed from. */
import type { LedgerLineAnswer, RequestLinesAnswer } from "../../../answers/ledger.ts";
import { change, count, instant, usd } from "../../parts/format.ts";
import { useAnswer } from "../../parts/load.ts";
import { html, useEffect, useState, type VNode } from "../../parts/view.ts";
import { AttemptWord, Awaited, Dialog, Table } from "../../parts/widgets.ts";
import { T } from "../../texts/texts.ts";
import { useEvery } from "../common/follow.ts";
import { ListingTable, usePages } from "../common/pages.ts";
import { Follow } from "./audit.ts";

type LineAttempt = LedgerLineAnswer["attempts"][number];
const W = T.operator.records;
const FOLLOW_EVERY_MS = 3_000;

export function Ledger({ account }: { account: string }): VNode {
  const listing = usePages<LedgerLineAnswer>(
    `/accounts/${encodeURIComponent(account)}/ledger?order=newest&limit=50`,
    "before",
  );
  const [isFollowing, setFollowing] = useState(false);
  const [shown, setShown] = useState<LedgerLineAnswer | undefined>(undefined);
  // A request that takes longer than the pause between two is not ended by the next one.
  useEvery(isFollowing ? FOLLOW_EVERY_MS : undefined, () => listing.isLoading || listing.reload());
  return html`<div class="filters"><${Follow} isFollowing=${isFollowing} onFollow=${setFollowing} /></div>
    <${ListingTable} listing=${listing} caption=${W.ledger} columns=${columnsOf(setShown)} keyOf=${keyOf} empty=${W.noLedger} />
    ${shown && html`<${Line} line=${shown} onClose=${() => setShown(undefined)} />`}`;
}

/** The lines of one request. If an answer ends before they are found, it says where the next one continues. */
export function RequestLedger({ account, request }: { account: string; request: string }): VNode {
  const [after, setAfter] = useState<number | undefined>(undefined);
  const [shown, setShown] = useState<LedgerLineAnswer | undefined>(undefined);
  const path = `/accounts/${encodeURIComponent(account)}/requests/${encodeURIComponent(request)}`;
  const loaded = useAnswer<RequestLinesAnswer>(after === undefined ? path : `${path}?after=${after}`);
  const next = loaded.data?.next ?? undefined;
  useEffect(() => {
    if (next !== undefined) setAfter(next);
  }, [next]);
  return html`<${Awaited} loaded=${loaded}>${(data: RequestLinesAnswer) =>
    data.next === null
      ? html`<${Table} caption=${W.ledger} columns=${columnsOf(setShown)} rows=${data.items} keyOf=${keyOf} empty=${W.noLedger} />`
      : !loaded.refused && html`<p class="faint">${T.common.loading}</p>`}</${Awaited}>
    ${shown && html`<${Line} line=${shown} onClose=${() => setShown(undefined)} />`}`;
}

const KINDS: Readonly<Record<string, string>> = W.kinds;
const PAYERS: Readonly<Record<string, string>> = W.payers;
const keyOf = (row: LedgerLineAnswer) => String(row.seq);

/** An account's balance or a card of it. */
const OF_CUSTOMER = /^(?:acct|ent)_/;

/** The amount, with a sign if it goes to or from the balance or a card of the account. */
function amountOf({ kind, debit, credit, usd: amount }: LedgerLineAnswer): string {
  // An opening line repeats what archived lines have moved.
  if (kind === "opening") return usd(amount);
  if (OF_CUSTOMER.test(debit)) return change(`-${amount}`);
  return OF_CUSTOMER.test(credit) ? change(amount) : usd(amount);
}

const columnsOf = (open: (line: LedgerLineAnswer) => void) => [
  {
    title: "#",
    cell: (row: LedgerLineAnswer) =>
      html`<button type="button" class="quiet" aria-label=${W.openLine(count(row.seq))} onClick=${() => open(row)}>${row.seq}</button>`,
  },
  {
    title: W.at,
    cell: (row: LedgerLineAnswer) => html`<time datetime=${row.at} title=${row.at}>${instant(row.at)}</time>`,
  },
  { title: W.kind, cell: (row: LedgerLineAnswer) => KINDS[row.kind] ?? row.kind },
  {
    title: W.about,
    cell: (row: LedgerLineAnswer) =>
      html`<bdi>${[row.model, row.group].filter(Boolean).join(" · ") || row.note || "–"}</bdi><br /><small>${row.reference}</small>`,
  },
  {
    title: W.amount,
    cell: amountOf,
    isNumber: true,
    below: ({ debit, credit }: LedgerLineAnswer) => (`${debit} ${credit}`.includes("ent_") ? KINDS.card : undefined),
  },
  { title: W.balance, cell: (row: LedgerLineAnswer) => usd(row.balance_usd), isNumber: true },
];

const ATTEMPTS = [
  { title: T.operator.upstream, cell: (row: LineAttempt) => html`${row.upstream}<br /><small>${row.model}</small>` },
  { title: W.outcome, cell: (row: LineAttempt) => html`<${AttemptWord} of=${row.outcome} /> ${row.status ?? ""}` },
  {
    title: W.tokens,
    cell: (row: LineAttempt) => `${count(row.input_tokens)} / ${count(row.output_tokens)}`,
    isNumber: true,
  },
  { title: W.cost, cell: (row: LineAttempt) => usd(row.cost_usd), isNumber: true },
  {
    title: W.paidBy,
    cell: (row: LineAttempt) =>
      html`${PAYERS[row.paid_by] ?? row.paid_by}<br /><small><${AttemptWord} of=${row.why} /></small>`,
  },
];

function Line({ line, onClose }: { line: LedgerLineAnswer; onClose: () => void }): VNode {
  const pairs = [
    [W.debit, line.debit],
    [W.credit, line.credit],
    [W.amount, amountOf(line)],
    [W.balance, usd(line.balance_usd)],
    [W.reference, line.reference],
    [T.operator.key, line.key],
    [W.note, line.note],
  ].filter(([, value]) => value);
  return html`<${Dialog} title=${W.line(count(line.seq))} onClose=${onClose}>
    <dl class="pairs">${pairs.map(([name, value]) => html`<div><dt>${name}</dt><dd><bdi>${value}</bdi></dd></div>`)}</dl>
    ${line.usage !== null && html`<h3>${W.computed}</h3><p class="faint">${W.units}</p><pre tabindex="0" class="json" aria-label=${W.computed}>${JSON.stringify(line.usage, null, 2)}</pre>`}
    ${line.attempts.length > 0 && html`<h3>${W.tries}</h3><${Table} caption=${W.tries} columns=${ATTEMPTS} rows=${line.attempts} keyOf=${(row: LineAttempt) => `${row.upstream} ${row.outcome}`} empty="" />`}
  </${Dialog}>`;
}
