/** Codes that were just created, to be saved or printed before they are gone. */
import type { NewCodesAnswer } from "../../../answers/answers.ts";
import { csv, download } from "../../parts/csv.ts";
import { html, type VNode } from "../../parts/view.ts";
import { Button, Code } from "../../parts/widgets.ts";
import { T } from "../../texts/texts.ts";

const W = T.operator.codes;

export function NewCodesOnce({ made }: { made: NewCodesAnswer }): VNode {
  const { card, label, redeem_by: day, batch_id: batch, items } = made;
  const save = () =>
    download(
      `codes-${batch ?? card}.csv`,
      csv([
        ["id", "code", "card", "label", "redeem_by"],
        ...items.map((one) => [one.id, one.code, card, label ?? "", day ?? ""]),
      ]),
    );
  return html`<p class="note warn" role="status">${W.once}</p>
    <h3>${label ?? card}${day !== null && ` · ${W.lastDay(day)}`}</h3>
    <div class="row actions"><${Button} onClick=${save}>${T.common.csv}</${Button}><${Button} onClick=${() => print()}>${W.print}</${Button}></div>
    <${Code} label=${W.codes} text=${items.map((one) => one.code).join("\n")} />`;
}
