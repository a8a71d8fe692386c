/** One model of the catalog. */
import type { OwnModelAnswer } from "../../../answers/own-usage.ts";
import { count, usd } from "../../parts/format.ts";
import { hrefOf } from "../../parts/router.ts";
import { html, type VNode } from "../../parts/view.ts";
import { Badge, CopyButton, Table, type TableColumn } from "../../parts/widgets.ts";
import { T } from "../../texts/texts.ts";

/** How a client of each protocol switches thinking on or off. */
const SWITCHES = [
  ["chat", 'reasoning_effort: "high"', 'reasoning_effort: "none"'],
  ["messages", 'thinking: {type: "enabled", budget_tokens: 10240}', 'thinking: {type: "disabled"}'],
  ["responses", 'reasoning: {effort: "high"}', 'reasoning: {effort: "none"}'],
] as const;

export function ModelPanel({ model }: { readonly model: OwnModelAnswer }): VNode {
  const words = T.owner.models;
  const facts: readonly (readonly [string, string])[] = [
    [words.context, words.tokens(count(model.context_tokens))],
    [words.maxOutput, words.tokens(count(model.max_output_tokens))],
    [words.defaultOutput, words.tokens(count(model.default_output_tokens))],
    [words.plans, model.plans.join(", ") || T.common.none],
  ];
  return html`<section class="panel model" aria-label=${model.name}>
    <div class="row apart">
      <div class="row"><h2>${model.name}</h2> <${CopyButton} text=${model.name} label=${words.copyName(model.name)} /></div>
      <div class="row">
        <${Badge} kind=${model.usable ? "good" : "warn"}>${model.usable ? words.usable : words.notUsable}</${Badge}>
        <a href=${hrefOf(["try"], { model: model.name })}>${words.tryIt}</a>
      </div>
    </div>
    <${Prices} model=${model} />
    <dl class="facts">${facts.map(([title, text]) => html`<div><dt>${title}</dt><dd>${text}</dd></div>`)}</dl>
    <${Groups} model=${model} />
    <${Thinking} model=${model} />
  </section>`;
}

interface PriceRow {
  readonly title: string;
  readonly prices: OwnModelAnswer["price_usd_per_million"];
}

function Prices({ model }: { readonly model: OwnModelAnswer }): VNode {
  const words = T.owner.models;
  const others = model.other_prices.map(({ tier, above_input_tokens: above, usd_per_million: prices }) => {
    const parts = [tier === null ? words.standard : words.tier(tier), above === null ? "" : words.above(count(above))];
    return { title: parts.filter(Boolean).join(", "), prices };
  });
  const columns: readonly TableColumn<PriceRow>[] = [
    ...(others.length > 0 ? [{ title: words.prices, cell: (row: PriceRow) => row.title }] : []),
    { title: words.input, isNumber: true, cell: ({ prices }) => usd(prices.input) },
    { title: words.cached, isNumber: true, cell: ({ prices }) => usd(prices.cached_input) },
    { title: words.cacheWrite, isNumber: true, cell: ({ prices }) => usd(prices.cache_write) },
    { title: words.cacheWrite1h, isNumber: true, cell: ({ prices }) => usd(prices.cache_write_1h) },
    { title: words.output, isNumber: true, cell: ({ prices }) => usd(prices.output) },
  ];
  const rows = [{ title: words.standard, prices: model.price_usd_per_million }, ...others];
  return html`<${Table} caption=${`${words.prices}${T.common.colon}${model.name}`} columns=${columns} rows=${rows} keyOf=${(row: PriceRow) => row.title} empty="" />
    ${
      model.tools.length > 0 &&
      html`<dl class="facts">${model.tools.map(({ name, usd: each }) => html`<div><dt>${name}</dt><dd>${usd(each)} ${words.perCall}</dd></div>`)}</dl>`
    }`;
}

function Groups({ model }: { readonly model: OwnModelAnswer }): VNode {
  const words = T.owner.models;
  const why = (cause: string) => words.refusals[cause as keyof typeof words.refusals] ?? cause;
  return html`<dl class="facts"><div><dt>${words.groups}</dt><dd>${
    model.groups.length === 0
      ? words.noGroups
      : html`<ul class="groups">${model.groups.map(
          ({ name, multiplier, refusal }) => html`<li>
            <${Badge} kind=${refusal === null ? "good" : "plain"}>${name} ${words.multiplier(multiplier)}</${Badge}>
            ${refusal !== null && html`<span class="faint">${why(refusal)}</span>`}
          </li>`,
        )}</ul>`
  }</dd></div></dl>`;
}

function Thinking({ model }: { readonly model: OwnModelAnswer }): VNode {
  const words = T.owner.models;
  const { thinking, efforts } = model;
  const kind = words.thinkingKinds[thinking];
  if (thinking === "none") return html`<dl class="facts"><div><dt>${words.thinking}</dt><dd>${kind}</dd></div></dl>`;
  return html`<details>
    <summary>${words.thinking}${T.common.colon}${kind}</summary>
    ${efforts.length > 0 && html`<p>${words.efforts(efforts.join(", "))}</p>`}
    <dl class="facts">${SWITCHES.map(
      ([protocol, on, off]) =>
        html`<div><dt>${protocol}</dt><dd><code>${on}</code>${thinking !== "fixed" && html` / <code>${off}</code>`}</dd></div>`,
    )}</dl>
  </details>`;
}
