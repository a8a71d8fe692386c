/** A table of codes by id, with a button to void each unredeemed code. */
import type { CodeAnswer } from "../../../answers/answers.ts";
import { ask } from "../../parts/api.ts";
import { instant } from "../../parts/format.ts";
import { hrefOf } from "../../parts/router.ts";
import { html, type VNode } from "../../parts/view.ts";
import { T } from "../../texts/texts.ts";
import { type Listing, ListingTable } from "../common/pages.ts";
import { State } from "../common/words.ts";
import { Write } from "../common/write.ts";

const W = T.operator.codes;

/** A link to the account by its id, which the search accepts like a name. */
function Redeemer({ id }: { readonly id: string | null }): VNode | null {
  if (id === null) return null;
  return html`<a href=${hrefOf(["accounts"], { search: id })}>${id}</a>`;
}

interface CodeTableProps {
  readonly listing: Listing<CodeAnswer>;
  readonly onDone: () => void;
}

/** Codes by id. The code itself is shown once, when it is created. */
export function CodeTable({ listing, onDone }: CodeTableProps): VNode {
  const voided = (id: string) => async () => {
    await ask(`/codes/${id}/void`, { method: "POST" });
    return undefined;
  };
  const columns = [
    { title: W.id, cell: (row: CodeAnswer) => html`<code>${row.id}</code>` },
    { title: W.card, cell: (row: CodeAnswer) => row.card },
    { title: T.operator.state, cell: (row: CodeAnswer) => html`<${State} of=${row.state} />` },
    { title: W.redeemBy, cell: (row: CodeAnswer) => row.redeem_by ?? T.common.none },
    {
      title: W.redeemed,
      cell: (row: CodeAnswer) =>
        row.redeemed_at === null
          ? "–"
          : html`${instant(row.redeemed_at)}<br /><small><${Redeemer} id=${row.account_id} /></small>`,
    },
    {
      title: T.operator.actions,
      cell: (row: CodeAnswer) =>
        row.state === "unused" &&
        html`<${Write} kind="danger" label=${W.void} about=${row.id} words=${W.voidWords(row.id)} send=${voided(row.id)} onDone=${onDone} />`,
    },
  ];
  return html`<${ListingTable} listing=${listing} caption=${W.all} columns=${columns} keyOf=${(row: CodeAnswer) => row.id} empty=${W.none} />`;
}
