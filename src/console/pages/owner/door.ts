/** Before somebody is in: a link that was opened, a passkey, the provider, the front's word, or how to get a link. */
import type { SignInWaysAnswer } from "../../answers/session.ts";
import { ask } from "../parts/api.ts";
import { useAnswer, useDeed } from "../parts/load.ts";
import { LanguageChoice } from "../parts/shell.ts";
import { html, useState, type VNode } from "../parts/view.ts";
import { Button, Form, Problem } from "../parts/widgets.ts";
import { T } from "../texts/texts.ts";
import { mayHavePasskeys, signInByPasskey } from "./access/browser-passkeys.ts";

interface DoorProps {
  readonly onEntered: () => void;
}

export function Door({ onEntered }: DoorProps): VNode {
  // What stands behind the # is read once. It leaves the address when it is used: until then a reload, or another language, needs it.
  const [token] = useState(() => location.hash.slice(1));
  const enter = useDeed(async () => {
    await ask("/sign-in/link", { method: "POST", body: { token } });
    history.replaceState(null, "", location.pathname);
    onEntered();
  });
  return html`<main class="door"><div class="panel">
    <h1>Tollgate</h1>
    ${
      token
        ? html`<p>${T.owner.door.linkOpened}</p>
          <${Form} deed=${enter} onSubmit=${() => enter.run()}>
            <${Button} kind="main" isRunning=${enter.isRunning}>${T.owner.door.enter}</${Button}>
          </${Form}>`
        : html`<${Ways} onEntered=${onEntered} />`
    }
    <${LanguageChoice} />
  </div></main>`;
}

/** Why the provider's answer let nobody in, as the address of this page says: only what is known here is shown. */
function cameBackWith(): string | undefined {
  const code = new URLSearchParams(location.search).get("refused") ?? "";
  const words: Readonly<Record<string, string>> = T.owner.door.refused;
  if (code === "") return undefined;
  return Object.hasOwn(words, code) ? words[code] : T.owner.door.refusedOtherwise;
}

function Ways({ onEntered }: DoorProps): VNode {
  const { data } = useAnswer<SignInWaysAnswer>("/sign-in/ways");
  const [refused, setRefused] = useState(cameBackWith);
  const by = (work: () => Promise<void>) => async () => {
    setRefused(undefined);
    await work();
    onEntered();
  };
  const passkey = useDeed(by(signInByPasskey));
  const front = useDeed(by(() => ask("/sign-in/front", { method: "POST" })));
  const provider = useDeed(async () => {
    const { location: there } = await ask<{ readonly location: string }>("/sign-in/oidc", { method: "POST" });
    location.assign(there);
  });
  return html`<p>${T.owner.door.signedOut}</p>
    ${refused && html`<div class="problem" role="alert"><p><strong>${refused}</strong></p></div>`}
    <${Problem} refused=${passkey.refused ?? front.refused ?? provider.refused} />
    <div class="ways">
      ${data?.front && html`<${Button} kind="main" isRunning=${front.isRunning} onClick=${() => front.run()}>${T.owner.door.byFront(data.front)}</${Button}>`}
      ${data?.oidc && html`<${Button} kind=${data.front ? "quiet" : "main"} isRunning=${provider.isRunning} onClick=${() => provider.run()}>${T.owner.door.byProvider(data.oidc)}</${Button}>`}
      ${mayHavePasskeys() && html`<${Button} kind=${data && !data.front && !data.oidc ? "main" : "quiet"} isRunning=${passkey.isRunning} onClick=${() => passkey.run()}>${T.owner.door.byPasskey}</${Button}>`}
    </div>
    <p class="faint">${T.owner.door.askOperator}</p>`;
}
