/** Verifies every account against its ledger, one after another, however long that takes. */
import type { VerificationAnswer, VerificationPageAnswer } from "../../../answers/ledger.ts";
import { ask } from "../../parts/api.ts";
import { count } from "../../parts/format.ts";
import { useAction } from "../../parts/load.ts";
import { hrefOf } from "../../parts/router.ts";
import { html, useState, type VNode } from "../../parts/view.ts";
import { Button, Problem, Table } from "../../parts/widgets.ts";
import { T } from "../../texts/texts.ts";
import { State } from "../common/words.ts";

const W = T.operator.verification;

const COLUMNS = [
  {
    title: T.operator.account,
    cell: (row: VerificationAnswer) => html`<a href=${hrefOf(["accounts", row.account])}>${row.account}</a>`,
  },
  { title: T.operator.state, cell: (row: VerificationAnswer) => html`<${State} of=${row.outcome} />` },
  {
    title: W.findings,
    cell: (row: VerificationAnswer) => row.findings.map(({ what }) => html`<small class="fact">${what}</small>`),
  },
];

export function Verification(): VNode {
  const [looked, setLooked] = useState<readonly VerificationAnswer[] | undefined>(undefined);
  const [isWhole, setWhole] = useState(false);
  const look = useAction(async () => {
    const seen: VerificationAnswer[] = [];
    let cursor: string | null = null;
    setWhole(false);
    do {
      const where: string = cursor === null ? "" : `?cursor=${encodeURIComponent(cursor)}`;
      const page: VerificationPageAnswer = await ask<VerificationPageAnswer>(`/ledger/verification${where}`);
      seen.push(...page.items);
      setLooked([...seen]);
      cursor = page.next;
    } while (cursor !== null);
    setWhole(true);
  });
  const wrong = looked?.filter(({ outcome }) => outcome !== "balanced");
  return html`<section><h2>${W.title}</h2><p class="faint">${W.words}</p>
    <${Button} onClick=${() => void look.run()} isRunning=${look.isRunning}>${W.look}</${Button}>
    <${Problem} refused=${look.refused} />
    ${looked && html`<p role="status">${isWhole ? W.done(count(looked.length)) : W.soFar(count(looked.length))}</p>`}
    ${wrong && (wrong.length > 0 || isWhole) && html`<${Table} caption=${W.findings} columns=${COLUMNS} rows=${wrong} keyOf=${(row: VerificationAnswer) => row.id} empty=${W.allGood} />`}
  </section>`;
}
