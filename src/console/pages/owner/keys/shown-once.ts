/** A key's text, shown only now, and client settings that contain it. */
import type { KeyGroupsAnswer, NewKeyAnswer } from "../../../answers/own.ts";
import { html, useState, type VNode } from "../../parts/view.ts";
import { Code, Field } from "../../parts/widgets.ts";
import { T } from "../../texts/texts.ts";
import { clientSettings } from "./clients.ts";

const W = T.owner.keys;

interface ShownOnceProps {
  readonly made: NewKeyAnswer;
  readonly groups: KeyGroupsAnswer | undefined;
}

export function ShownOnce({ made, groups }: ShownOnceProps): VNode {
  return html`<p class="note warn" role="status">${W.shownNote}</p>
    <${Code} label=${W.key} text=${made.key} />
    <${ClientSettings} made=${made} groups=${groups} />`;
}

interface ChoiceProps {
  readonly label: string;
  readonly value: string;
  readonly options: readonly string[];
  readonly onChoose: (value: string) => void;
}

function Choice({ label, value, options, onChoose }: ChoiceProps): VNode {
  return html`<${Field} label=${label}>${({ id }: { id: string }) => html`<select
    id=${id}
    value=${value}
    onChange=${(event: Event) => onChoose((event.target as HTMLSelectElement).value)}
  >${options.map((one) => html`<option value=${one}>${one}</option>`)}</select>`}</${Field}>`;
}

function ClientSettings({ made, groups }: ShownOnceProps): VNode {
  const models = groups?.items.find(({ name }) => name === made.group)?.models ?? [];
  const [chosenModel, setModel] = useState<string | undefined>(undefined);
  const [chosenClient, setClient] = useState<string | undefined>(undefined);
  const model = chosenModel ?? models[0] ?? "MODEL";
  const all = clientSettings({ address: groups?.address ?? location.origin, key: made.key, model });
  const client = all.find(({ name }) => name === chosenClient) ?? all[0];
  return html`<h2>${W.settings}</h2>
    <div class="row search">
      <${Choice} label=${W.client} value=${client?.name ?? ""} options=${all.map(({ name }) => name)} onChoose=${setClient} />
      ${models.length > 0 && html`<${Choice} label=${W.model} value=${model} options=${models} onChoose=${setModel} />`}
    </div>
    ${models.length === 0 && html`<p class="hint">${W.noModelToShow}</p>`}
    ${client?.files.map(({ where, text }) => html`<${Code} key=${`${client.name} ${where}`} label=${where} text=${text} />`)}`;
}
