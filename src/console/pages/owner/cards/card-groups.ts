/** Time cards by group, in the order in which they pay: what is left, when each ends, which one follows. */
import type { OwnAccountAnswer } from "../../../answers/own.ts";
import { fromNow, instant, usd } from "../../parts/format.ts";
import { Meter } from "../../parts/meter.ts";
import { html, type VNode } from "../../parts/view.ts";
import { Badge, Table, type TableColumn } from "../../parts/widgets.ts";
import { T } from "../../texts/texts.ts";

const W = T.owner.cards;

type Card = OwnAccountAnswer["entitlements"][number];

const KINDS = { running: "good", waiting: "plain", used_up: "bad", ended: "plain" } as const;

export function CardGroups({ cards }: { cards: readonly Card[] }): VNode {
  const groups = [...new Set(cards.map(({ group }) => group))];
  return html`${groups.map((group) => {
    const own = cards.filter((card) => card.group === group);
    return html`<section key=${group}>
      <h3>${W.group(group)}</h3>
      <p class="faint">${covered(own)}</p>
      <${Table} caption=${W.group(group)} columns=${COLUMNS} rows=${own} keyOf=${(card: Card) => card.id} empty=${W.none} />
    </section>`;
  })}`;
}

const COLUMNS: readonly TableColumn<Card>[] = [
  {
    title: W.card,
    cell: (card) => html`<span>${card.card ?? card.id}<small>${W.plan(card.plan)}</small></span>`,
  },
  {
    title: W.state,
    cell: (card) => html`<${Badge} kind=${KINDS[card.state]}>${W.states[card.state]}</${Badge}>`,
  },
  { title: W.rest, cell: (card) => html`<${Rest} card=${card} />` },
  { title: W.from, cell: (card) => instant(card.from) },
  {
    title: W.until,
    cell: (card) => html`<span>${instant(card.until)}<small>${fromNow(card.until)}</small></span>`,
  },
  {
    title: W.next,
    cell: ({ next }) => (next === null ? W.nothing : nextOf(next)),
  },
];

/** The card that pays next, and from when on unless it runs already. */
function nextOf({ card, from }: NonNullable<Card["next"]>): string {
  const name = card ?? W.aCard;
  return Date.parse(from) <= Date.now() ? name : W.nextFrom(name, instant(from));
}

function Rest({ card }: { card: Card }): VNode {
  if (card.quota_usd === null || card.rest_usd === null) {
    return html`<span>${W.noQuota}<small>${W.spent(usd(card.spent_usd))}</small></span>`;
  }
  const said = W.restOf(usd(card.rest_usd), usd(card.quota_usd));
  return html`<span>${said}<${Meter} label=${said} rest=${card.rest_usd} limit=${card.quota_usd} /></span>`;
}

/** The time during which a card of the group pays without a gap. */
function covered(cards: readonly Card[]): string {
  const useful = cards
    .filter(({ state }) => state === "running" || state === "waiting")
    .sort((a, b) => Date.parse(a.from) - Date.parse(b.from));
  const [first] = useful;
  if (!first) return W.notCovered;
  let until = first.until;
  for (const card of useful) {
    if (Date.parse(card.from) <= Date.parse(until) && Date.parse(card.until) > Date.parse(until)) until = card.until;
  }
  return first.running ? W.coveredUntil(instant(until)) : W.coveredFrom(instant(first.from), instant(until));
}
