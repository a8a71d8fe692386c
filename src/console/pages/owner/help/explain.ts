/** Explains what would happen to a request with one of the owner's keys; nothing is sent, held or charged. */

import type { OwnExplanationAnswer } from "../../../answers/explanation.ts";
import { ask } from "../../parts/api.ts";
import { inWords, reasonsOf } from "../../parts/explained.ts";
import { usd } from "../../parts/format.ts";
import { useAction } from "../../parts/load.ts";
import { html, useState, type VNode } from "../../parts/view.ts";
import { Badge, Button, Field, Form, Table, type TableColumn } from "../../parts/widgets.ts";
import { T } from "../../texts/texts.ts";
import type { FieldIds } from "../field-ids.ts";
import { useKeyNames } from "../key-names.ts";
import { useModelNames } from "../model-names.ts";

type OwnExplainedStep = OwnExplanationAnswer["steps"][number];

export function Explain({ account }: { readonly account: string }): VNode {
  const words = T.owner.help;
  const keys = [...useKeyNames(account).values()].filter(({ status }) => status !== "revoked");
  const models = useModelNames();
  const [asked, setAsked] = useState({ key: "", model: "", protocol: "chat", maxTokens: "" });
  const [answer, setAnswer] = useState<OwnExplanationAnswer | undefined>(undefined);
  const key = asked.key || keys[0]?.id || "";
  const isBadLimit = !/^\d{0,12}$/.test(asked.maxTokens);
  const action = useAction(async () => {
    const { model, protocol, maxTokens } = asked;
    const body = { key_id: key, model, protocol, ...(maxTokens && { max_tokens: Number(maxTokens) }) };
    setAnswer(undefined);
    setAnswer(await ask<OwnExplanationAnswer>("/explain", { method: "POST", body }));
  });
  const typed = (name: keyof typeof asked) => (event: Event) =>
    setAsked({ ...asked, [name]: (event.target as HTMLInputElement).value });
  const protocols = Object.entries(T.owner.tryIt.protocols);
  return html`<section class="panel"><h2>${words.explain}</h2>
      <p class="hint">${words.explainHint}</p>
      ${keys.length === 0 && html`<p>${words.noKeys}</p>`}
      <${Form} action=${action} onSubmit=${() => key && asked.model && !isBadLimit && action.run()}>
        <div class="side-by-side">
          <${Field} label=${words.key}>${({ id }: FieldIds) => html`<select id=${id} onChange=${typed("key")}>${keys.map((one) => html`<option value=${one.id} selected=${one.id === key}>${one.name ?? one.id} (${one.group})</option>`)}</select>`}</${Field}>
          <${Field} label=${words.model} hint=${words.modelHint}>${({ id, describedBy }: FieldIds) => html`<input id=${id} aria-describedby=${describedBy} list="all-models" autocomplete="off" spellcheck="false" onInput=${typed("model")} />`}</${Field}>
          <${Field} label=${words.protocol}>${({ id }: FieldIds) => html`<select id=${id} onChange=${typed("protocol")}>${protocols.map(([name, title]) => html`<option value=${name}>${title}</option>`)}</select>`}</${Field}>
          <${Field} label=${words.maxTokens} hint=${words.maxTokensHint} wrong=${isBadLimit ? words.badMaxTokens : undefined}>${({ id, describedBy }: FieldIds) => html`<input id=${id} aria-describedby=${describedBy} inputmode="numeric" onInput=${typed("maxTokens")} />`}</${Field}>
        </div>
        <datalist id="all-models">${models.map((name) => html`<option value=${name}></option>`)}</datalist>
        <${Button} kind="main" disabled=${!key || !asked.model || isBadLimit} isRunning=${action.isRunning}>${words.tell}</${Button}>
      </${Form}>
    </section>
    ${answer && html`<${Explained} answer=${answer} />`}`;
}

function Explained({ answer }: { readonly answer: OwnExplanationAnswer }): VNode {
  const words = T.owner.help;
  const { expected, hold, steps } = answer;
  const [, remedy] = T.owner.errorWords[expected.cause as keyof typeof T.owner.errorWords] ?? [];
  return html`<section class="panel" aria-live="polite">
    ${
      expected.cause === null
        ? html`<p><strong>${words.wouldPass}</strong> ${hold && words.hold(usd(hold.usd))}</p>`
        : html`<div class="problem">
            <p><strong>${words.wouldFail(String(expected.status), expected.cause)}</strong></p>
            <div title=${expected.message}>${reasonsOf(answer).map((why) => html`<p>${why}</p>`)}</div><p>${remedy ?? expected.remedy}</p>
          </div>`
    }
    <${Table} caption=${words.explain} columns=${stepColumns()} rows=${steps} keyOf=${(one: OwnExplainedStep) => one.step} empty="" />
  </section>`;
}

const stepColumns = (): readonly TableColumn<OwnExplainedStep>[] => {
  const words = T.owner.help;
  const verdict = ({ ok }: OwnExplainedStep) => {
    if (ok === null) return html`<${Badge} kind="plain">${words.notReached}</${Badge}>`;
    return html`<${Badge} kind=${ok ? "good" : "bad"}>${ok ? words.passed : words.failed}</${Badge}>`;
  };
  return [
    { title: words.step, cell: ({ step }) => words.steps[step as keyof typeof words.steps] ?? step },
    { title: words.verdict, cell: verdict },
    {
      title: words.words,
      cell: ({ ok, words: why }) => (ok === null ? "" : html`<span title=${why}>${inWords(why)}</span>`),
    },
  ];
};
