/** All errors of the gateway with their texts. */
import type { ErrorsAnswer, ErrorWordsAnswer } from "../../../answers/own-usage.ts";
import { useAnswer } from "../../parts/load.ts";
import { html, useState, type VNode } from "../../parts/view.ts";
import { Awaited, Field, Table, type TableColumn } from "../../parts/widgets.ts";
import { T } from "../../texts/texts.ts";

export function Errors(): VNode {
  const words = T.owner.help;
  const loaded = useAnswer<ErrorsAnswer>("/errors");
  const [search, setSearch] = useState("");
  const typed = (event: Event) => setSearch((event.target as HTMLInputElement).value);
  return html`<section class="panel"><h2>${words.errors}</h2>
    <p class="hint">${words.errorsHint}</p>
    <${Field} label=${words.findError} hint=${words.findErrorHint}>${({ id, describedBy }: { id: string; describedBy?: string }) => html`<input type="search" id=${id} aria-describedby=${describedBy} autocomplete="off" onInput=${typed} />`}</${Field}>
    <${Awaited} loaded=${loaded}>${(data: ErrorsAnswer) => html`<${Table} caption=${words.errors} columns=${columns()}
      rows=${data.items.map(inOwnWords).filter((row) => isLike(row, search))} keyOf=${(row: ErrorWordsAnswer) => row.cause} empty=${words.noError} />`}</${Awaited}>
  </section>`;
}

/** The text in the language of the page, if it has one. */
function inOwnWords(row: ErrorWordsAnswer): ErrorWordsAnswer {
  const own = T.owner.errorWords[row.cause as keyof typeof T.owner.errorWords] as readonly [string, string] | undefined;
  return own ? { ...row, means: own[0], remedy: own[1] } : row;
}

/** Whether the row contains every word of the search. */
function isLike(row: ErrorWordsAnswer, search: string): boolean {
  const text = Object.values(row).join(" ").toLowerCase();
  return search
    .toLowerCase()
    .split(/\s+/)
    .every((word) => text.includes(word));
}

const columns = (): readonly TableColumn<ErrorWordsAnswer>[] => {
  const words = T.owner.help;
  return [
    {
      title: words.cause,
      cell: ({ cause, identifier }) =>
        html`<span class="cause"><code>${cause}</code><small>${identifier}</small></span>`,
    },
    { title: words.status, cell: ({ status }) => String(status) },
    { title: words.means, cell: ({ means }) => means },
    { title: words.todo, cell: ({ remedy }) => remedy },
  ];
};
