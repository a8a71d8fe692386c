/** One batch: the numbers of redeemed, voided and unused codes, and what was spent on them. */
import type { BatchReportShape, CodeAnswer } from "../../../answers/answers.ts";
import type { Static } from "../../../vocabulary.ts";
import { ask } from "../../parts/api.ts";
import { count, instant, usd } from "../../parts/format.ts";
import { useAnswer } from "../../parts/load.ts";
import { hrefOf } from "../../parts/router.ts";
import { html, type VNode } from "../../parts/view.ts";
import { Awaited, Figure } from "../../parts/widgets.ts";
import { T } from "../../texts/texts.ts";
import { usePages } from "../common/pages.ts";
import { Write } from "../common/write.ts";
import { CodeTable } from "./table.ts";

type Report = Static<typeof BatchReportShape>;
const W = T.operator.codes;

export function BatchPage({ id }: { id: string }): VNode {
  const base = `/code-batches/${encodeURIComponent(id)}`;
  const report = useAnswer<Report>(`${base}/report`);
  const codes = usePages<CodeAnswer>(`/codes?batch=${encodeURIComponent(id)}&limit=50`);
  const done = () => {
    report.reload();
    codes.reload();
  };
  const voidAll = async () => {
    await ask(`${base}/void`, { method: "POST" });
    return undefined;
  };
  return html`<p><a href=${hrefOf(["codes"])}>← ${W.title}</a></p>
    <${Awaited} loaded=${report}>${(data: Report) => html`<h1 dir="auto">${data.label}</h1>
      <p class="faint"><code>${data.id}</code> · ${W.facts(data.card, data.group, instant(data.created_at))}${data.redeem_by !== null && ` · ${W.lastDay(data.redeem_by)}`}</p>
      <dl class="figures">
        <${Figure} title=${W.madeCount}>${count(data.made)}</${Figure}>
        <${Figure} title=${W.redeemedCount}>${count(data.redeemed)}</${Figure}>
        <${Figure} title=${W.unusedCount}>${count(data.unused)}</${Figure}>
        <${Figure} title=${W.voidCount}>${count(data.void)}</${Figure}>
        <${Figure} title=${W.expiredCount}>${count(data.expired)}</${Figure}>
        <${Figure} title=${W.spent} hint=${data.redeemed_quota_usd === null ? undefined : W.ofQuota(usd(data.redeemed_quota_usd))}>${usd(data.spent_usd)}</${Figure}>
      </dl>
      ${data.unused > 0 && html`<${Write} kind="danger" label=${W.voidAll} about=${id} words=${W.voidAllWords(count(data.unused))} send=${voidAll} onDone=${done} />`}`}</${Awaited}>
    <h2>${W.all}</h2>
    <${CodeTable} listing=${codes} onDone=${done} />`;
}
