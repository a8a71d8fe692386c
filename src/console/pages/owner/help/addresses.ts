/** The address for each kind of client, and complete settings to copy. */
import { html, useState, type VNode } from "../../parts/view.ts";
import { Code, CopyButton, Field, Table, type TableColumn } from "../../parts/widgets.ts";
import { T } from "../../texts/texts.ts";
import { clientSettings } from "../keys/clients.ts";
import { useModels } from "../model-names.ts";

interface AddressRow {
  readonly client: string;
  readonly address: string;
}

export function Addresses(): VNode {
  const words = T.owner.help;
  const { origin } = location;
  const rows: readonly AddressRow[] = [
    { client: words.appendsPath, address: `${origin}/v1` },
    { client: words.appendsV1, address: origin },
    { client: words.wholeChat, address: `${origin}/v1/chat/completions` },
    { client: words.wholeMessages, address: `${origin}/v1/messages` },
    { client: words.wholeResponses, address: `${origin}/v1/responses` },
  ];
  const columns: readonly TableColumn<AddressRow>[] = [
    { title: words.client, cell: ({ client }) => client },
    {
      title: words.address,
      cell: ({ address }) =>
        html`<span class="row"><code>${address}</code><${CopyButton} text=${address} label=${words.copyAddress(address)} /></span>`,
    },
  ];
  return html`<section class="panel"><h2>${words.addresses}</h2>
      <p class="hint">${words.addressHint}</p>
      <${Table} caption=${words.addresses} columns=${columns} rows=${rows} keyOf=${(row: AddressRow) => row.address} empty="" />
    </section>
    <${ClientSettings} origin=${origin} />`;
}

function ClientSettings({ origin }: { readonly origin: string }): VNode {
  const words = T.owner.help;
  const models = useModels();
  const [chosen, setChosen] = useState("");
  const model = chosen || (models.find(({ usable }) => usable) ?? models[0])?.name || "big-1";
  const pick = (event: Event) => setChosen((event.target as HTMLSelectElement).value);
  return html`<section class="panel"><h2>${words.settings}</h2>
    <p class="hint">${words.settingsHint}</p>
    <${Field} label=${words.settingsModel}>${({ id }: { id: string }) => html`<select id=${id} onChange=${pick}>${models.map(({ name }) => html`<option value=${name} selected=${name === model}>${name}</option>`)}</select>`}</${Field}>
    ${clientSettings({ address: origin, key: "sk-…", model }).map(
      ({ name, files }) =>
        html`<details><summary>${name}</summary>${files.map(
          ({ where, text }) => html`<${Code} label=${`${name}, ${where}`} text=${text} />`,
        )}</details>`,
    )}
  </section>`;
}
