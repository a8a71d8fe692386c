/** The configuration in force, and why the last refused reload was refused. */
import type { ConfigurationAnswer } from "../../../answers/live.ts";
import { count, instant } from "../../parts/format.ts";
import { useAnswer } from "../../parts/load.ts";
import { html, useState, type VNode } from "../../parts/view.ts";
import { Awaited, Button, Figure, Table } from "../../parts/widgets.ts";
import { T } from "../../texts/texts.ts";
import { Input } from "../common/write.ts";

type RefusedReload = NonNullable<ConfigurationAnswer["refused"]>;
type ConfigurationFault = RefusedReload["problems"][number];
const W = T.operator.configuration;

export function Configuration(): VNode {
  const configuration = useAnswer<ConfigurationAnswer>("/configuration");
  return html`<div class="row apart"><h1>${W.title}</h1><${Button} onClick=${configuration.reload}>${W.reload}</${Button}></div>
    <${Awaited} loaded=${configuration}>${(data: ConfigurationAnswer) => html`
      <dl class="figures">
        <${Figure} title=${W.generation}>${count(data.generation)}</${Figure}>
        <${Figure} title=${W.since}>${instant(data.since)}</${Figure}>
      </dl>
      ${data.waiting_for_restart.length > 0 && html`<p class="note warn">${W.restart} ${data.waiting_for_restart.map((name) => html`<code>${name}</code> `)}</p>`}
      <${LastRefused} refused=${data.refused} since=${data.since} />
      <${Settings} settings=${data.settings as Record<string, unknown>} />`}</${Awaited}>`;
}

const FAULTS = [
  {
    title: W.place,
    cell: (row: ConfigurationFault) => (row.file === "" ? "–" : `${row.file}:${row.line}:${row.column}`),
  },
  { title: W.setting, cell: (row: ConfigurationFault) => html`<code>${row.key || "–"}</code>` },
  { title: W.problem, cell: (row: ConfigurationFault) => row.message },
];

function LastRefused({ refused, since }: { refused: RefusedReload | null; since: string }): VNode {
  if (refused === null) return html`<p>${W.noneRefused}</p>`;
  const isOver = refused.at < since;
  return html`<section><h2>${W.refused}</h2>
    <p class=${isOver ? "note" : "note warn"}>${W.refusedAt(instant(refused.at))} ${isOver ? W.acceptedSince : W.oldInForce}</p>
    <${Table} caption=${W.refused} columns=${FAULTS} rows=${refused.problems} keyOf=${(row: ConfigurationFault) => `${row.line} ${row.column} ${row.key}`} empty="–" />
  </section>`;
}

/** Settings by their top-level names, each collapsed. A search opens those that match. */
function Settings({ settings }: { settings: Readonly<Record<string, unknown>> }): VNode {
  const [search, setSearch] = useState("");
  const wanted = search.trim().toLowerCase();
  const all = Object.entries(settings).map(([name, value]) => [name, JSON.stringify(value, null, 2)] as const);
  const found = all.filter(
    ([name, text]) => wanted === "" || name.includes(wanted) || text.toLowerCase().includes(wanted),
  );
  return html`<section><h2>${W.settings}</h2><p class="faint">${W.settingsWords}</p>
    <${Input} field=${{ name: "search", label: T.operator.search }} value=${search} onValue=${setSearch} />
    ${found.map(([name, text]) => html`<details key=${name} open=${wanted !== "" && found.length < 4}><summary><code>${name}</code>${text.length < 60 && !text.includes("\n") && html` <span class="faint">${text}</span>`}</summary><pre tabindex="0" class="json" aria-label=${name}>${text}</pre></details>`)}
    ${found.length === 0 && html`<p class="empty">${W.noneFound}</p>`}
  </section>`;
}
