/**
 * The sign-in page of owners: a sign-in link that was opened, a passkey, the OpenID provider, the trusted front, or how
 * to get a link.
 */
import type { SignInMethodsAnswer } from "../../answers/session.ts";
import { ask } from "../parts/api.ts";
import { useAction, useAnswer } from "../parts/load.ts";
import { LanguageChoice, useTitle } from "../parts/shell.ts";
import { html, useState, type VNode } from "../parts/view.ts";
import { Button, Form, Problem } from "../parts/widgets.ts";
import { T } from "../texts/texts.ts";
import { mayHavePasskeys, signInByPasskey } from "./access/browser-passkeys.ts";

interface SignInProps {
  /** Whether the page was shown because a session has ended. */
  readonly isEnded: boolean;
  readonly onEntered: () => void;
}

export function SignIn({ isEnded, onEntered }: SignInProps): VNode {
  // The part after the # is read once. It stays in the address until it is used, because a reload or a change of the
  // language needs it.
  const [token] = useState(() => location.hash.slice(1));
  // The title of the page before may have a name.
  useTitle("Tollgate");
  const enter = useAction(async () => {
    await ask("/sign-in/link", { method: "POST", body: { token } });
    history.replaceState(null, "", location.pathname);
    onEntered();
  });
  return html`<main class="sign-in"><div class="panel">
    <h1>Tollgate</h1>
    ${
      token
        ? html`<p>${T.owner.signIn.linkOpened}</p>
          <${Form} action=${enter} onSubmit=${() => enter.run()}>
            <${Button} kind="main" isRunning=${enter.isRunning}>${T.owner.signIn.enter}</${Button}>
          </${Form}>`
        : html`<${Ways} isEnded=${isEnded} onEntered=${onEntered} />`
    }
    <${LanguageChoice} />
  </div></main>`;
}

/** The refusal of a sign-in by the provider, from the address of this page. An unknown code gets a general text. */
function refusalOfProvider(): string | undefined {
  const code = new URLSearchParams(location.search).get("refused") ?? "";
  const words: Readonly<Record<string, string>> = T.owner.signIn.refused;
  if (code === "") return undefined;
  return Object.hasOwn(words, code) ? words[code] : T.owner.signIn.refusedOtherwise;
}

function Ways({ isEnded, onEntered }: SignInProps): VNode {
  const { data } = useAnswer<SignInMethodsAnswer>("/sign-in/ways");
  const [refused, setRefused] = useState(refusalOfProvider);
  const by = (work: () => Promise<void>) => async () => {
    setRefused(undefined);
    await work();
    onEntered();
  };
  const passkey = useAction(by(signInByPasskey));
  const front = useAction(by(() => ask("/sign-in/front", { method: "POST" })));
  const provider = useAction(async () => {
    const { location: there } = await ask<{ readonly location: string }>("/sign-in/oidc", { method: "POST" });
    location.assign(there);
  });
  return html`<p role="status">${isEnded ? T.common.sessionEnded : T.owner.signIn.signedOut}</p>
    ${refused && html`<div class="problem" role="alert"><p><strong>${refused}</strong></p></div>`}
    <${Problem} refused=${passkey.refused ?? front.refused ?? provider.refused} />
    <div class="sign-in-methods">
      ${data?.front && html`<${Button} kind="main" isRunning=${front.isRunning} onClick=${() => front.run()}>${T.owner.signIn.byFront(data.front)}</${Button}>`}
      ${data?.oidc && html`<${Button} kind=${data.front ? "quiet" : "main"} isRunning=${provider.isRunning} onClick=${() => provider.run()}>${T.owner.signIn.byProvider(data.oidc)}</${Button}>`}
      ${mayHavePasskeys() && html`<${Button} kind=${data && !data.front && !data.oidc ? "main" : "quiet"} isRunning=${passkey.isRunning} onClick=${() => passkey.run()}>${T.owner.signIn.byPasskey}</${Button}>`}
    </div>
    <p class="faint">${T.owner.signIn.askOperator}</p>`;
}
