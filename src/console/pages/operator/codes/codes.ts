/** Codes for time cards: all batches, or one batch with the states of its codes. */
import type { BatchAnswer, CodeAnswer, NewCodesAnswer } from "../../../answers/answers.ts";
import { ask } from "../../parts/api.ts";
import { count, instant } from "../../parts/format.ts";
import type { OnceRunner } from "../../parts/once.ts";
import { hrefOf } from "../../parts/router.ts";
import { html, type VNode } from "../../parts/view.ts";
import { T } from "../../texts/texts.ts";
import { ListingTable, usePages } from "../common/pages.ts";
import { usdOrNone } from "../common/words.ts";
import { choices, type Typed, Write } from "../common/write.ts";
import type { OperatorPageProps } from "../session.ts";
import { BatchPage } from "./batch.ts";
import { NewCodesOnce } from "./once.ts";
import { CodeTable } from "./table.ts";

const W = T.operator.codes;

export function Codes({ session, place }: OperatorPageProps): VNode {
  const [, id] = place.path;
  return id === undefined ? html`<${Batches} session=${session} />` : html`<${BatchPage} key=${id} id=${id} />`;
}

const COLUMNS = [
  {
    title: W.label,
    cell: (row: BatchAnswer) => html`<a href=${hrefOf(["codes", row.id])}><bdi>${row.label}</bdi></a>`,
  },
  { title: W.card, cell: (row: BatchAnswer) => row.card },
  { title: W.count, cell: (row: BatchAnswer) => count(row.count), isNumber: true },
  { title: W.quota, cell: (row: BatchAnswer) => usdOrNone(row.quota_usd), isNumber: true },
  { title: W.redeemBy, cell: (row: BatchAnswer) => row.redeem_by ?? T.common.none },
  { title: W.made, cell: (row: BatchAnswer) => instant(row.created_at) },
];

function Batches({ session }: Pick<OperatorPageProps, "session">): VNode {
  const listing = usePages<BatchAnswer>("/code-batches?limit=50");
  const codes = usePages<CodeAnswer>("/codes?limit=50");
  const done = () => {
    listing.reload();
    codes.reload();
  };
  const make = async ({ card = "", count: wanted = "", label = "", day = "" }: Typed, once: OnceRunner) => {
    const body = (id: string) => ({
      card,
      // If it is not a whole number, the gateway refuses it with its own message.
      count: /^\d{1,6}$/.test(wanted) ? Number(wanted) : wanted,
      ...(label && { label }),
      ...(day && { redeem_by: day }),
      idempotency_id: id,
    });
    const made = await once((id) => ask<NewCodesAnswer>("/codes", { method: "POST", body: body(id) }));
    return html`<${NewCodesOnce} made=${made} />`;
  };
  return html`<div class="row apart"><h1>${W.title}</h1>
    ${
      session.cards.length > 0 &&
      html`<${Write} kind="main" deedName="codes" label=${W.make} about="" words=${W.makeWords} send=${make} onDone=${done} fields=${[
        { name: "card", label: W.card, options: choices(session.cards) },
        { name: "count", label: W.count, value: "10", type: "number" },
        { name: "label", label: W.label, hint: W.labelHint },
        { name: "day", label: W.redeemBy, hint: W.redeemByHint, type: "date" },
      ]} />`
    }</div>
    ${session.cards.length === 0 && html`<p class="note">${W.noCards}</p>`}
    <h2>${W.batches}</h2>
    <${ListingTable} listing=${listing} caption=${W.batches} columns=${COLUMNS} keyOf=${(row: BatchAnswer) => row.id} empty=${W.noBatches} />
    <h2>${W.all}</h2>
    <${CodeTable} listing=${codes} onDone=${done} />`;
}
