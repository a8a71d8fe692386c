/** Suspends or revokes a key. */
import type { KeyAnswer } from "../../../answers/answers.ts";
import { ask } from "../../parts/api.ts";
import { useAction } from "../../parts/load.ts";
import { html, useState, type VNode } from "../../parts/view.ts";
import { Button, Dialog, Form, Problem } from "../../parts/widgets.ts";
import { T } from "../../texts/texts.ts";

const W = T.owner.keys;

interface EndProps {
  readonly of: KeyAnswer;
  readonly onChanged: () => void;
}

export function PausePanel({ of: key, onChanged }: EndProps): VNode {
  const isSuspended = key.status === "suspended";
  const action = useAction(async (what: "suspend" | "resume") => {
    await ask(`/keys/${key.id}/${what}`, { method: "POST" });
    onChanged();
  });
  return html`<section class="panel" aria-label=${W.pause}>
    <h2>${W.pause}</h2>
    <p class="hint" role="status">${isSuspended ? W.isSuspended : W.pauseHint}</p>
    <${Form} action=${action} onSubmit=${() => action.run(isSuspended ? "resume" : "suspend")}>
      <${Button} isRunning=${action.isRunning}>${isSuspended ? W.resume : W.suspend}</${Button}>
    </${Form}>
  </section>`;
}

export function RevokePanel({ of: key, onChanged }: EndProps): VNode {
  const [isAsked, setAsked] = useState(false);
  const action = useAction(async () => {
    await ask(`/keys/${key.id}/revoke`, { method: "POST" });
    setAsked(false);
    onChanged();
  });
  const close = () => {
    setAsked(false);
    action.forget();
  };
  return html`<section class="panel" aria-label=${W.revoke}>
    <h2>${W.revoke}</h2>
    <p class="hint">${W.revokeHint}</p>
    <${Button} kind="danger" onClick=${() => setAsked(true)}>${W.revokeNow}</${Button}>
    ${!isAsked && html`<${Problem} refused=${action.refused} />`}
    ${
      isAsked &&
      html`<${Dialog} title=${W.revokeTitle} onClose=${close}>
        <p dir="auto">${W.revokeWarning(key.name === null ? key.id : `${key.name} (${key.id})`)}</p>
        <${Form} action=${action} onSubmit=${() => action.run()}>
          <div class="row">
            <${Button} kind="danger" isRunning=${action.isRunning}>${W.revokeForGood}</${Button}>
            <${Button} onClick=${close}>${T.common.cancel}</${Button}>
          </div>
        </${Form}>
      </${Dialog}>`
    }
  </section>`;
}
