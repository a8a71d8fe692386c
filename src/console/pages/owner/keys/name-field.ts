/** The input for a key's display name. */
import { html, type VNode } from "../../parts/view.ts";
import { Field } from "../../parts/widgets.ts";
import { T } from "../../texts/texts.ts";

interface NameFieldProps {
  readonly name: string;
  readonly onType: (name: string) => void;
  readonly hint?: string;
}

export function NameField({ name, onType, hint }: NameFieldProps): VNode {
  return html`<${Field} label=${T.owner.keys.name} hint=${hint}>${({
    id,
    describedBy,
  }: {
    id: string;
    describedBy?: string;
  }) => html`<input
    id=${id}
    dir="auto"
    aria-describedby=${describedBy}
    value=${name}
    autocomplete="off"
    onInput=${(event: Event) => onType((event.target as HTMLInputElement).value)}
  />`}</${Field}>`;
}
