/** The entry point of the owners' pages: sign-in, or the page that the address names. */

import type { SessionAnswer } from "../../answers/session.ts";
import { ApiError, ask, ROOT } from "../parts/api.ts";
import { go, hrefOf, usePlace } from "../parts/router.ts";
import { Shell } from "../parts/shell.ts";
import { useSignOut } from "../parts/sign-out.ts";
import { html, render, useEffect, useState, type VNode } from "../parts/view.ts";
import { Problem } from "../parts/widgets.ts";
import { T } from "../texts/texts.ts";
import { Access } from "./access/access.ts";
import { Cards } from "./cards/cards.ts";
import { Help } from "./help/help.ts";
import { Keys } from "./keys/keys.ts";
import { Models } from "./models/models.ts";
import { Overview } from "./overview/overview.ts";
import type { PageProps } from "./session.ts";
import { SignIn } from "./sign-in.ts";
import { TryIt } from "./try/try.ts";
import { Usage } from "./usage/usage.ts";

/** The pages by the first segment of their address, in the order of the menu. */
const PAGES: readonly {
  readonly at: string;
  readonly title: string;
  readonly isNamed?: boolean;
  readonly Page: (props: PageProps) => VNode;
}[] = [
  { at: "", title: T.owner.overview.title, Page: Overview },
  { at: "keys", title: T.owner.keys.title, isNamed: true, Page: Keys },
  { at: "cards", title: T.owner.cards.title, Page: Cards },
  { at: "usage", title: T.owner.usage.title, isNamed: true, Page: Usage },
  { at: "models", title: T.owner.models.title, Page: Models },
  { at: "try", title: T.owner.tryIt.title, Page: TryIt },
  { at: "access", title: T.owner.access.title, Page: Access },
  { at: "help", title: T.owner.help.title, Page: Help },
];

function App(): VNode | null {
  const place = usePlace();
  const [session, setSession] = useState<SessionAnswer | "none" | "ended" | undefined>(undefined);
  const [refused, setRefused] = useState<ApiError | undefined>(undefined);
  const isSignIn = place.path[0] === "sign-in";
  const enter = () =>
    ask<SessionAnswer>("/session").then(setSession, (error: unknown) => {
      if (error instanceof ApiError && error.status === 401) setSession("none");
      else setRefused(error instanceof ApiError ? error : new ApiError(0, "page_failed", String(error), ""));
    });
  const out = useSignOut("/sign-out", (now) =>
    setSession((old: SessionAnswer | "none" | "ended" | undefined) => (typeof old === "object" ? now : old)),
  );
  useEffect(() => void enter(), []);
  if (refused)
    return html`<div class="sign-in"><${Problem} refused=${refused} retry=${() => location.reload()} /></div>`;
  if (session === undefined) return html`<p class="late" role="status">${T.common.loading}</p>`;
  const entered = () => {
    // If a session had ended, the owner returns to the page where that happened.
    if (isSignIn) go(hrefOf([]), true);
    void enter();
  };
  if (typeof session === "string" || (isSignIn && location.hash !== ""))
    return html`<${SignIn} isEnded=${session === "ended"} onEntered=${entered} />`;
  const [at = "", ...below] = place.path;
  const found = PAGES.find((page) => page.at === at);
  return html`<${Shell} pages=${PAGES} at=${at} name=${below.filter((segment) => segment !== "new").at(-1)} who=${session.account} onSignOut=${() => out.run()}>
    <${Problem} refused=${out.refused} />
    ${session.status !== "normal" && html`<p class="note warn" role="status">${T.owner.mayOnlyLook[session.status]}</p>`}
    ${
      found
        ? html`<${found.Page} key=${at} session=${session} place=${place} />`
        : html`<h1>${T.common.notFound}</h1><p><a href=${hrefOf([])}>${T.common.home}</a></p>`
    }
  </${Shell}>`;
}

const host = document.getElementById("app");
if (host) render(html`<${App} root=${ROOT} />`, host);
