/** A form to explain what would happen to a request; nothing is sent or charged. */
import type { ExplanationAnswer } from "../../../answers/explanation.ts";
import { ask } from "../../parts/api.ts";
import { inWords, reasonsOf } from "../../parts/explained.ts";
import { count, usd } from "../../parts/format.ts";
import { useAction } from "../../parts/load.ts";
import { html, useState, type VNode } from "../../parts/view.ts";
import { Badge, Button, Form, Table } from "../../parts/widgets.ts";
import { T } from "../../texts/texts.ts";
import { State } from "../common/words.ts";
import { byField, choices, Input, type Typed, type WriteField } from "../common/write.ts";
import type { OperatorPageProps } from "../session.ts";

type StepRow = ExplanationAnswer["steps"][number];
type ExplainedRoute = ExplanationAnswer["routes"][number];
const W = T.operator.explain;
const PROTOCOLS = ["chat", "messages", "responses"];
const FIELDS: readonly WriteField[] = [
  { name: "key_id", label: W.keyId, hint: W.keyIdHint },
  { name: "model", label: T.operator.model, hint: W.modelHint },
  { name: "protocol", label: W.protocol, options: choices(PROTOCOLS) },
  { name: "max_tokens", label: W.maxTokens, hint: W.maxTokensHint, type: "number" },
  { name: "input_bytes", label: W.inputBytes, hint: W.inputBytesHint, type: "number" },
];

export function Explain({ session, place }: OperatorPageProps): VNode {
  const [typed, setTyped] = useState<Typed>({
    key_id: place.query.get("key") ?? "",
    model: session.models[0] ?? "",
    protocol: "chat",
    max_tokens: "",
    input_bytes: "",
  });
  const [answer, setAnswer] = useState<ExplanationAnswer | undefined>(undefined);
  const explain = useAction(async () => {
    setAnswer(undefined);
    const numbers = (["max_tokens", "input_bytes"] as const).filter((name) => typed[name]);
    const body = {
      key_id: typed.key_id?.trim(),
      model: typed.model,
      protocol: typed.protocol,
      ...Object.fromEntries(numbers.map((name) => [name, Number(typed[name])])),
    };
    setAnswer(
      await ask<ExplanationAnswer>("/explain", { method: "POST", body }).catch((error: unknown) => {
        throw byField(error, FIELDS);
      }),
    );
  });
  return html`<h1>${W.title}</h1><p class="faint">${W.words}</p>
    <${Form} action=${explain} onSubmit=${() => explain.run()}>
      ${FIELDS.map((field) => html`<${Input} field=${field} value=${typed[field.name] ?? ""} onValue=${(value: string) => setTyped((old: Typed) => ({ ...old, [field.name]: value }))} />`)}
      <${Button} kind="main" isRunning=${explain.isRunning}>${W.ask}</${Button}>
    </${Form}>
    ${answer && html`<${Explained} answer=${answer} />`}`;
}

/** The same names as in the help of owners. */
const STEP_NAMES: Readonly<Record<string, string>> = T.owner.help.steps;
const ERRORS: Readonly<Record<string, readonly [means: string, remedy: string]>> = T.owner.errorWords;

const STEPS = [
  { title: W.step, cell: (row: StepRow) => STEP_NAMES[row.step] ?? row.step },
  {
    title: W.decided,
    cell: (row: StepRow) =>
      html`<${Badge} kind=${row.ok === null ? "plain" : row.ok ? "good" : "bad"}>${row.ok === null ? W.notReached : row.ok ? W.yes : W.no}</${Badge}>`,
  },
  {
    title: W.why,
    cell: (row: StepRow) => (row.ok === null ? "" : html`<span title=${row.words}>${inWords(row.words)}</span>`),
  },
];
const ROUTES = [
  {
    title: T.operator.upstream,
    cell: (row: ExplainedRoute) => html`${row.upstream}<br /><small>${row.upstream_model}</small>`,
  },
  { title: T.operator.state, cell: (row: ExplainedRoute) => html`<${State} of=${row.health} />` },
  { title: W.protocol, cell: (row: ExplainedRoute) => row.protocol },
  {
    title: W.translation,
    cell: (row: ExplainedRoute) =>
      html`<span title=${howOf(row)}>${inWords(howOf(row))}</span>${row.dropped.length > 0 && html`<br /><small>${W.dropped(row.dropped.join(", "))}</small>`}`,
  },
];

const howOf = ({ refusal, translation }: ExplainedRoute): string => refusal?.words ?? translation ?? "–";

function Explained({ answer }: { answer: ExplanationAnswer }): VNode {
  const { expected, hold, price } = answer;
  const isGood = expected.status < 400;
  const [, remedy] = ERRORS[expected.cause ?? ""] ?? [];
  const [why, ...more] = reasonsOf(answer);
  return html`<section aria-live="polite"><h2>${W.answer}</h2>
    <div class=${isGood ? "note" : "problem"}><p><strong>${expected.status}</strong> ${expected.cause && html`<code>${expected.cause}</code>`} <span title=${expected.message}>${why}</span></p>
      ${more.map((words) => html`<p>${words}</p>`)}${expected.remedy && html`<p>${remedy ?? expected.remedy}</p>`}</div>
    ${hold && html`<p>${W.hold(usd(hold.usd), hold.paid_by === "balance" ? W.balance : hold.paid_by)}</p>`}
    ${price && html`<p>${W.price(count(price.input_tokens_max), count(price.output_tokens_max), usd(price.worst_usd), price.multiplier)}</p>`}
    ${answer.clamped !== null && html`<p>${W.clamped} <code>${answer.clamped}</code></p>`}
    <h3>${W.steps}</h3>
    <${Table} caption=${W.steps} columns=${STEPS} rows=${answer.steps} keyOf=${(row: StepRow) => row.step} empty="–" />
    <h3>${W.routes}</h3>
    <${Table} caption=${W.routes} columns=${ROUTES} rows=${answer.routes} keyOf=${(row: ExplainedRoute) => `${row.upstream} ${row.upstream_model}`} empty=${W.noRoutes} />
  </section>`;
}
