/** The catalog: the models, their prices, and which can be used now. */
import type { OwnModelAnswer, OwnModelsAnswer } from "../../../answers/own-usage.ts";
import { count } from "../../parts/format.ts";
import { useAnswer } from "../../parts/load.ts";
import { html, useMemo, useState, type VNode } from "../../parts/view.ts";
import { Awaited, Button, Field } from "../../parts/widgets.ts";
import { T } from "../../texts/texts.ts";
import { ModelPanel } from "./model-panel.ts";

/** Number of models shown at first, and added by each press of the button. */
const SHOWN = 50;

export function Models(): VNode {
  const loaded = useAnswer<OwnModelsAnswer>("/models");
  return html`<h1>${T.owner.models.title}</h1>
    <${Awaited} loaded=${loaded}>${(data: OwnModelsAnswer) =>
      data.items.length === 0
        ? html`<p class="empty">${T.owner.models.empty}</p>`
        : html`<${Catalog} all=${data.items} />`}</${Awaited}>`;
}

function Catalog({ all }: { readonly all: readonly OwnModelAnswer[] }): VNode {
  const words = T.owner.models;
  const [search, setSearch] = useState("");
  const [onlyUsable, setOnlyUsable] = useState(false);
  const [most, setMost] = useState(SHOWN);
  const found = useMemo(
    () =>
      all.filter((model) => (model.usable || !onlyUsable) && model.name.toLowerCase().includes(search.toLowerCase())),
    [all, search, onlyUsable],
  );
  const typed = (event: Event) => setSearch((event.target as HTMLInputElement).value.trim());
  const chosen = (event: Event) => setOnlyUsable((event.target as HTMLInputElement).checked);
  return html`<div class="side-by-side">
      <${Field} label=${words.search}>${({ id }: { id: string }) => html`<input type="search" id=${id} autocomplete="off" spellcheck="false" onInput=${typed} />`}</${Field}>
      <label class="row check"><input type="checkbox" checked=${onlyUsable} onChange=${chosen} /> ${words.onlyUsable}</label>
    </div>
    <p class="faint" role="status">${words.count(count(found.length), count(all.length))} ${words.pricesHint}</p>
    ${found.length === 0 && html`<p class="empty">${words.noneFound}</p>`}
    ${found.slice(0, most).map((model) => html`<${ModelPanel} key=${model.name} model=${model} />`)}
    ${found.length > most && html`<${Button} kind="quiet" onClick=${() => setMost(most + SHOWN)}>${T.common.more}</${Button}>`}`;
}
