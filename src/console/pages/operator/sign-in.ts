/** The sign-in page of the operator: the admin token, sent once, or the OpenID provider. */
import { ApiError, ask } from "../parts/api.ts";
import { useAction, useAnswer } from "../parts/load.ts";
import { LanguageChoice, useTitle } from "../parts/shell.ts";
import { html, useLayoutEffect, useRef, useState, type VNode } from "../parts/view.ts";
import { Button, Field, Form, Problem } from "../parts/widgets.ts";
import { T } from "../texts/texts.ts";

interface OperatorSignInProps {
  /** Whether the page was shown because a session has ended. */
  readonly isEnded: boolean;
  readonly onEntered: () => void;
}

export function OperatorSignIn({ isEnded, onEntered }: OperatorSignInProps): VNode {
  const [token, setToken] = useState("");
  const field = useRef<HTMLInputElement>(null);
  // The title of the page before may have a name.
  useTitle("Tollgate");
  useLayoutEffect(() => field.current?.focus(), []);
  const words = T.operator.signIn;
  const enter = useAction(async () => {
    await ask("/session", { method: "POST", body: { token: token.trim() } }).catch((error: unknown) => {
      // The gateway's words are for programs too; where the token is, is said below its field. The code is one without a
      // translated remedy.
      throw error instanceof ApiError && error.code === "wrong_token"
        ? new ApiError(error.status, "not_the_token", words.wrongToken, "")
        : error;
    });
    // Otherwise a browser that did not keep the cookie would show this page again without an explanation.
    await ask("/session").catch((error: unknown) => {
      throw error instanceof ApiError && error.status === 401
        ? new ApiError(401, "no_cookie", words.noCookie, words.noCookieRemedy)
        : error;
    });
    setToken("");
    onEntered();
  });
  const { data: methods } = useAnswer<{ readonly oidc: string | null }>("/session/ways");
  const provider = useAction(async () => {
    const { location: there } = await ask<{ readonly location: string }>("/session/oidc", { method: "POST" });
    location.assign(there);
  });
  const refused = new URLSearchParams(location.search).get("refused");
  const typed = (event: Event) => setToken((event.target as HTMLInputElement).value);
  return html`<main class="sign-in"><div class="panel">
    <h1>Tollgate</h1>
    ${refused && html`<div class="problem" role="alert"><p><strong>${refused === "oidc_not_operator" ? words.notOperator : words.refused}</strong></p></div>`}
    ${isEnded && html`<p class="note warn" role="status">${T.common.sessionEnded}</p>`}
    <p>${words.asks}</p>
    <${Problem} refused=${provider.refused} />
    ${methods?.oidc && html`<p><${Button} kind="main" isRunning=${provider.isRunning} onClick=${() => provider.run()}>${words.byProvider(methods.oidc)}</${Button}></p>`}
    <${Form} action=${enter} onSubmit=${() => enter.run()}>
      <${Field} label=${words.token} hint=${words.where}>${({ id, describedBy }: { id: string; describedBy: string }) =>
        html`<input ref=${field} id=${id} aria-describedby=${describedBy} type="password" autocomplete="current-password"
          value=${token} onInput=${typed} required />`}</${Field}>
      <${Button} kind=${methods?.oidc ? "quiet" : "main"} isRunning=${enter.isRunning} disabled=${token.trim() === ""}>${words.enter}</${Button}>
    </${Form}>
    <${LanguageChoice} />
  </div></main>`;
}
