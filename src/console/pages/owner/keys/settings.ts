/** Settings of a key, each saved separately: name, expiry, group. Each takes effect with the key's next request. */
import type { KeyAnswer } from "../../../answers/answers.ts";
import type { KeyGroupAnswer } from "../../../answers/own.ts";
import { ApiError, ask } from "../../parts/api.ts";
import { useAction } from "../../parts/load.ts";
import { type ComponentChildren, html, useState, type VNode } from "../../parts/view.ts";
import { Button, Form } from "../../parts/widgets.ts";
import { T } from "../../texts/texts.ts";
import { ExpiryField, instantOf, typedInstant } from "./expiry.ts";
import { GroupChoice } from "./group-choice.ts";
import { NameField } from "./name-field.ts";

const W = T.owner.keys;

interface SettingProps {
  readonly title: string;
  readonly work: () => Promise<void>;
  readonly children?: ComponentChildren;
}

/** A form that saves one setting and confirms it. */
export function Setting({ title, work, children }: SettingProps): VNode {
  const [isSaved, setSaved] = useState(false);
  const action = useAction(async () => {
    setSaved(false);
    await work();
    setSaved(true);
  });
  return html`<section class="panel" aria-label=${title}>
    <h2>${title}</h2>
    <${Form} action=${action} onSubmit=${() => action.run()}>
      ${children}
      <div class="row">
        <${Button} kind="main" isRunning=${action.isRunning} label=${`${W.save}${T.common.colon}${title}`}>${W.save}</${Button}>
        <span role="status" class="good">${isSaved && W.saved}</span>
      </div>
    </${Form}>
  </section>`;
}

interface KeyProps {
  readonly of: KeyAnswer;
  readonly onChanged: () => void;
}

export function NamePanel({ of: key, onChanged }: KeyProps): VNode {
  const [name, setName] = useState(key.name ?? "");
  const save = async () => {
    await ask(`/keys/${key.id}/name`, { method: "PUT", body: { name: name || null } });
    onChanged();
  };
  return html`<${Setting} title=${W.rename} work=${save}><${NameField} name=${name} onType=${setName} hint=${W.nameHint} /></${Setting}>`;
}

export function ExpiryPanel({ of: key, onChanged }: KeyProps): VNode {
  const [ends, setEnds] = useState(typedInstant(key.expires_at));
  const save = async () => {
    // An unchanged value is sent as it is, including its seconds.
    const expires_at = ends === typedInstant(key.expires_at) ? key.expires_at : (instantOf(ends) ?? null);
    await ask(`/keys/${key.id}/expiry`, { method: "PUT", body: { expires_at } });
    onChanged();
  };
  return html`<${Setting} title=${W.end} work=${save}><${ExpiryField} typed=${ends} onType=${setEnds} /></${Setting}>`;
}

export function GroupPanel({ of: key, groups, onChanged }: KeyProps & { groups: readonly KeyGroupAnswer[] }): VNode {
  const [group, setGroup] = useState(key.group);
  const save = async () => {
    if (group === "") throw new ApiError(0, "no_group", W.noGroup, "");
    await ask(`/keys/${key.id}/group`, { method: "PUT", body: { group } });
    onChanged();
  };
  return html`<${Setting} title=${W.move} work=${save}>
    <${GroupChoice} groups=${groups} chosen=${group} onChoose=${setGroup} hint=${W.chooseGroupHint} />
  </${Setting}>`;
}
