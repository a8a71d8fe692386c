/** The settings of a conversation: model, protocol, key and limits. */

import type { OwnModelAnswer } from "../../../answers/own-usage.ts";
import { html, type VNode } from "../../parts/view.ts";
import { Field } from "../../parts/widgets.ts";
import { T } from "../../texts/texts.ts";
import type { FieldIds } from "../field-ids.ts";
import { PROTOCOL_NAMES, type ProtocolName } from "./protocols.ts";

export interface TrySettings {
  readonly model: string;
  readonly protocol: ProtocolName;
  readonly keyKind: "made" | "own";
  readonly group: string;
  readonly pasted: string;
  /** As typed. */
  readonly maxTokens: string;
  readonly system: string;
}

interface SettingsProps {
  readonly settings: TrySettings;
  readonly models: readonly OwnModelAnswer[];
  readonly groups: readonly string[];
  readonly isBadLimit: boolean;
  readonly onChange: (change: Partial<TrySettings>) => void;
}

const typedIn = (event: Event): string => (event.target as HTMLInputElement).value;

export function Settings({ settings, models, groups, isBadLimit, onChange }: SettingsProps): VNode {
  const words = T.owner.tryIt;
  const names = models.map(({ name }) => name);
  // The model in the address need not be in the catalog: trying it shows what happens.
  const all = settings.model === "" || names.includes(settings.model) ? names : [settings.model, ...names];
  const option = (value: string, now: string, title = value) =>
    html`<option value=${value} selected=${value === now}>${title}</option>`;
  return html`<section class="panel">
    <div class="side-by-side">
      <${Field} label=${words.model}>${({ id }: FieldIds) => html`<select id=${id} onChange=${(event: Event) => onChange({ model: typedIn(event), group: "" })}>${all.map((name) => option(name, settings.model))}</select>`}</${Field}>
      <${Field} label=${words.protocol}>${({ id }: FieldIds) => html`<select id=${id} onChange=${(event: Event) => onChange({ protocol: typedIn(event) as ProtocolName })}>${PROTOCOL_NAMES.map((name) => option(name, settings.protocol, words.protocols[name]))}</select>`}</${Field}>
      <${Field} label=${words.maxTokens} wrong=${isBadLimit ? words.badMaxTokens : undefined}>${({ id, describedBy }: FieldIds) => html`<input id=${id} aria-describedby=${describedBy} inputmode="numeric" value=${settings.maxTokens} onInput=${(event: Event) => onChange({ maxTokens: typedIn(event).trim() })} />`}</${Field}>
    </div>
    <${KeyChoice} settings=${settings} groups=${groups} onChange=${onChange} />
    <details>
      <summary>${words.system}</summary>
      <${Field} label=${words.system} hint=${words.systemHint}>${({ id, describedBy }: FieldIds) => html`<textarea id=${id} aria-describedby=${describedBy} value=${settings.system} onInput=${(event: Event) => onChange({ system: typedIn(event) })}></textarea>`}</${Field}>
    </details>
  </section>`;
}

function KeyChoice({ settings, groups, onChange }: Pick<SettingsProps, "settings" | "groups" | "onChange">): VNode {
  const words = T.owner.tryIt;
  const kinds = [
    ["made", words.keyMade],
    ["own", words.keyOwn],
  ] as const;
  return html`<fieldset>
    <legend>${words.key}</legend>
    ${kinds.map(
      ([kind, title]) =>
        html`<label class="row"><input type="radio" name="key-kind" value=${kind} checked=${settings.keyKind === kind} onChange=${() => onChange({ keyKind: kind })} /> <span>${title}</span></label>`,
    )}
    ${
      settings.keyKind === "own"
        ? html`<${Field} label=${words.pasted} hint=${words.pastedHint}>${({ id, describedBy }: FieldIds) => html`<input type="password" id=${id} aria-describedby=${describedBy} autocomplete="off" spellcheck="false" value=${settings.pasted} onInput=${(event: Event) => onChange({ pasted: typedIn(event) })} />`}</${Field}>`
        : groups.length === 0
          ? html`<p class="hint">${words.noGroups}</p>`
          : html`<${Field} label=${words.group}>${({ id }: FieldIds) => html`<select id=${id} onChange=${(event: Event) => onChange({ group: typedIn(event) })}>${groups.map((name) => html`<option value=${name} selected=${name === settings.group}>${name}</option>`)}</select>`}</${Field}>`
    }
  </fieldset>`;
}
