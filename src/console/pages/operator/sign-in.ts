/** The sign-in page of the operator: the admin token, sent once, or the OpenID provider. */
import { AskRefused, ask } from "../parts/api.ts";
import { useAnswer, useDeed } from "../parts/load.ts";
import { LanguageChoice } from "../parts/shell.ts";
import { html, useState, type VNode } from "../parts/view.ts";
import { Button, Field, Form, Problem } from "../parts/widgets.ts";
import { T } from "../texts/texts.ts";

export function OperatorSignIn({ onEntered }: { onEntered: () => void }): VNode {
  const [token, setToken] = useState("");
  const words = T.operator.signIn;
  const enter = useDeed(async () => {
    await ask("/session", { method: "POST", body: { token: token.trim() } });
    // Otherwise a browser that did not keep the cookie would show this page again without an explanation.
    await ask("/session").catch((error: unknown) => {
      throw error instanceof AskRefused && error.status === 401
        ? new AskRefused(401, "no_cookie", words.noCookie, words.noCookieRemedy)
        : error;
    });
    setToken("");
    onEntered();
  });
  const { data: ways } = useAnswer<{ readonly oidc: string | null }>("/session/ways");
  const provider = useDeed(async () => {
    const { location: there } = await ask<{ readonly location: string }>("/session/oidc", { method: "POST" });
    location.assign(there);
  });
  const refused = new URLSearchParams(location.search).get("refused");
  const typed = (event: Event) => setToken((event.target as HTMLInputElement).value);
  return html`<main class="sign-in"><div class="panel">
    <h1>Tollgate</h1>
    ${refused && html`<div class="problem" role="alert"><p><strong>${refused === "oidc_not_operator" ? words.notOperator : words.refused}</strong></p></div>`}
    <p>${words.asks}</p>
    <${Problem} refused=${provider.refused} />
    ${ways?.oidc && html`<p><${Button} kind="main" isRunning=${provider.isRunning} onClick=${() => provider.run()}>${words.byProvider(ways.oidc)}</${Button}></p>`}
    <${Form} deed=${enter} onSubmit=${() => enter.run()}>
      <${Field} label=${words.token} hint=${words.where}>${({ id, describedBy }: { id: string; describedBy: string }) =>
        html`<input id=${id} aria-describedby=${describedBy} type="password" autocomplete="current-password"
          value=${token} onInput=${typed} required />`}</${Field}>
      <${Button} kind=${ways?.oidc ? "quiet" : "main"} isRunning=${enter.isRunning} disabled=${token.trim() === ""}>${words.enter}</${Button}>
    </${Form}>
    <${LanguageChoice} />
  </div></main>`;
}
