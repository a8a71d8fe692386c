/**
 * Whether the store has its history, which charges still wait in the journal, and the confirmation that the store is to
 * be used as it is.
 */
import type { StoreAnswer } from "../../../answers/answers.ts";
import { ApiError, ask } from "../../parts/api.ts";
import { count } from "../../parts/format.ts";
import { useAnswer } from "../../parts/load.ts";
import { html, type VNode } from "../../parts/view.ts";
import { Awaited, Figure, Table } from "../../parts/widgets.ts";
import { T } from "../../texts/texts.ts";
import { useEvery } from "../common/follow.ts";
import { State } from "../common/words.ts";
import { type Typed, Write } from "../common/write.ts";
import { useLive } from "../overview/live.ts";

type Difference = StoreAnswer["differences"][number];
const LOOK_EVERY_MS = 3_000;
const W = T.operator.store;

const COLUMNS = [
  { title: W.part, cell: (row: Difference) => count(row.part), isNumber: true },
  { title: W.finding, cell: (row: Difference) => W.findings[row.finding] },
  { title: W.remembered, cell: (row: Difference) => epoch(row.remembered) },
  { title: W.found, cell: (row: Difference) => epoch(row.found) },
];

function epoch(of: Difference["found"]): VNode | string {
  return of === null ? "–" : html`<code>${of.id}</code><br /><small>${W.counted(count(of.counted_seconds))}</small>`;
}

export function StorePage(): VNode {
  const store = useAnswer<StoreAnswer>("/store");
  const newest = useLive().snapshots.at(-1);
  useEvery(LOOK_EVERY_MS, () => store.isLoading || store.reload());
  const confirm =
    (seen: string) =>
    async ({ confirm: typed = "" }: Typed) => {
      if (typed.trim() !== seen) throw new ApiError(400, "not_typed", W.notTyped, W.typeToken);
      await ask("/store/confirm", { method: "POST", body: { confirm: seen } });
      return undefined;
    };
  return html`<h1>${W.title}</h1>
    <${Awaited} loaded=${store}>${(data: StoreAnswer) => html`
      <dl class="figures">
        <${Figure} title=${W.state}><${State} of=${data.state} /></${Figure}>
        <${Figure} title=${W.waiting} hint=${W.waitingHint}>${count(data.waiting_charges)}</${Figure}>
        ${newest && html`<${Figure} title=${W.fill} hint=${W.fillHint}>${count(Math.round(newest.journal_fill * 1_000) / 10)} %</${Figure}>`}
      </dl>
      <p class=${data.state === "good" && data.problem === null ? "note" : "note warn"} role="status">${W.words[data.state]}</p>
      ${data.problem !== null && html`<p class="note warn" role="status">${W.unusable(data.problem)}</p>`}
      ${data.differences.length > 0 && html`<h2>${W.differences}</h2><${Table} caption=${W.differences} columns=${COLUMNS} rows=${data.differences} keyOf=${(row: Difference) => String(row.part)} empty="" />`}
      ${
        data.confirm !== null &&
        html`<p>${W.token} <code>${data.confirm}</code></p>
        <${Write} kind="danger" label=${W.confirm} about=${data.confirm} words=${W.confirmWords} send=${confirm(data.confirm)} onDone=${store.reload}
          fields=${[{ name: "confirm", label: W.typeToken }]} />`
      }`}</${Awaited}>`;
}
