/** The form for a new key, which is shown once. */
import type { KeyGroupsAnswer, NewKeyAnswer } from "../../../answers/own.ts";
import { ApiError, ask } from "../../parts/api.ts";
import { useAction, useAnswer } from "../../parts/load.ts";
import { useOnce } from "../../parts/once.ts";
import { hrefOf } from "../../parts/router.ts";
import { html, useLayoutEffect, useState, type VNode } from "../../parts/view.ts";
import { Awaited, Button, Form } from "../../parts/widgets.ts";
import { T } from "../../texts/texts.ts";
import type { PageProps } from "../session.ts";
import { ExpiryField, instantOf } from "./expiry.ts";
import { GroupChoice } from "./group-choice.ts";
import { NameField } from "./name-field.ts";
import { ShownOnce } from "./shown-once.ts";

const W = T.owner.keys;

export function CreateKey({ session }: Pick<PageProps, "session">): VNode {
  const groups = useAnswer<KeyGroupsAnswer>("/key-groups");
  const [made, setMade] = useState<NewKeyAnswer | undefined>(undefined);
  useLayoutEffect(() => {
    // The form that had the focus is gone.
    if (made) document.querySelector<HTMLElement>("main")?.focus();
  }, [made]);
  if (made) {
    return html`<h1>${W.shownTitle}</h1>
      <section class="panel"><${ShownOnce} made=${made} groups=${groups.data} /></section>
      <p class="row">
        <a class="button main" href=${hrefOf(["keys"])}>${W.stored}</a>
        <a class="button" href=${hrefOf(["keys", made.id])}><bdi>${made.name ?? made.id}</bdi></a>
      </p>`;
  }
  return html`<p><a href=${hrefOf(["keys"])}>← ${W.back}</a></p>
    <h1>${W.create}</h1>
    <section class="panel"><${Awaited} loaded=${groups}>${(data: KeyGroupsAnswer) =>
      html`<${CreateForm} account=${session.account} groups=${data} onMade=${setMade} />`}</${Awaited}></section>`;
}

interface CreateFormProps {
  readonly account: string;
  readonly groups: KeyGroupsAnswer;
  readonly onMade: (made: NewKeyAnswer) => void;
}

function CreateForm({ account, groups, onMade }: CreateFormProps): VNode {
  const [name, setName] = useState("");
  const [group, setGroup] = useState("");
  const [ends, setEnds] = useState("");
  // If the answer was lost, sending the form again, even after a reload, creates no second key.
  const once = useOnce(`key ${account}`);
  const create = useAction(async () => {
    if (group === "") throw new ApiError(0, "no_group", W.noGroup, "");
    const expires_at = instantOf(ends);
    const chosen = { group, ...(name && { name }), ...(expires_at && { expires_at }) };
    const path = `/accounts/${encodeURIComponent(account)}/keys`;
    onMade(await once.run((id) => ask(path, { method: "POST", body: { ...chosen, idempotency_id: id } })));
  });
  const lost =
    create.refused?.code === "key_exists" ? /key_[0-9A-Za-z]{18}/.exec(create.refused.message)?.[0] : undefined;
  const anew = useAction(async () => {
    await ask(`/keys/${lost}/revoke`, { method: "POST" });
    once.renew();
    await create.run();
  });
  return html`<${Form} action=${create} onSubmit=${() => create.run()}>
      <${NameField} name=${name} onType=${setName} hint=${W.nameHint} />
      <${GroupChoice} groups=${groups.items} chosen=${group} onChoose=${setGroup} hint=${W.chooseGroupHint} />
      <${ExpiryField} typed=${ends} onType=${setEnds} />
      <div class="row">
        <${Button} kind="main" isRunning=${create.isRunning}>${W.createNow}</${Button}>
        <a class="button" href=${hrefOf(["keys"])}>${T.common.cancel}</a>
      </div>
      ${mayBeMade(create.refused) && html`<p class="note warn">${W.createLost}</p>`}
    </${Form}>
    ${
      lost &&
      html`<${Form} action=${anew} onSubmit=${() => anew.run()}>
        <${Button} kind="danger" isRunning=${anew.isRunning}>${W.revokeAndCreate}</${Button}>
      </${Form}>`
    }`;
}

/** Whether the outcome is unknown: no answer, or one of a front or store that does not tell. */
export function mayBeMade(refused: ApiError | undefined): boolean {
  return (
    refused !== undefined && (refused.code === "unreachable" || refused.code === "unreadable" || refused.status >= 500)
  );
}
