/** The entry point of the operator's pages: sign-in, or the page that the address names. */
import type { OperatorAnswer } from "../../answers/session.ts";
import { ApiError, ask } from "../parts/api.ts";
import { hrefOf, usePlace } from "../parts/router.ts";
import { Shell } from "../parts/shell.ts";
import { useSignOut } from "../parts/sign-out.ts";
import { html, render, useEffect, useState, type VNode } from "../parts/view.ts";
import { Problem } from "../parts/widgets.ts";
import { T } from "../texts/texts.ts";
import { Accounts } from "./accounts/accounts.ts";
import { Codes } from "./codes/codes.ts";
import { Configuration } from "./configuration/configuration.ts";
import { Explain } from "./explain/explain.ts";
import { Notices } from "./notices/notices.ts";
import { OperatorOverview } from "./overview/overview.ts";
import { Reconcile } from "./reconcile/reconcile.ts";
import { Records } from "./records/records.ts";
import type { OperatorPageProps } from "./session.ts";
import { OperatorSignIn } from "./sign-in.ts";
import { StorePage } from "./store/store.ts";
import { Upstreams } from "./upstreams/upstreams.ts";

const TITLES = T.operator.titles;

/** The pages by the first segment of their address, in the order of the menu. */
const PAGES: readonly {
  readonly at: string;
  readonly title: string;
  readonly isNamed?: boolean;
  readonly Page: (props: OperatorPageProps) => VNode;
}[] = [
  { at: "", title: TITLES.overview, Page: OperatorOverview },
  { at: "accounts", title: TITLES.accounts, isNamed: true, Page: Accounts },
  { at: "codes", title: TITLES.codes, isNamed: true, Page: Codes },
  { at: "records", title: TITLES.records, Page: Records },
  { at: "upstreams", title: TITLES.upstreams, isNamed: true, Page: Upstreams },
  { at: "explain", title: TITLES.explain, Page: Explain },
  { at: "reconcile", title: TITLES.reconcile, Page: Reconcile },
  { at: "notices", title: TITLES.notices, Page: Notices },
  { at: "configuration", title: TITLES.configuration, Page: Configuration },
  { at: "store", title: TITLES.store, Page: StorePage },
];

function App(): VNode | null {
  const place = usePlace();
  const [session, setSession] = useState<OperatorAnswer | "none" | "ended" | undefined>(undefined);
  const [refused, setRefused] = useState<ApiError | undefined>(undefined);
  const enter = () =>
    ask<OperatorAnswer>("/session").then(setSession, (error: unknown) => {
      if (error instanceof ApiError && error.status === 401) setSession("none");
      else setRefused(error instanceof ApiError ? error : new ApiError(0, "page_failed", String(error), ""));
    });
  const out = useSignOut("/session/end", (now) =>
    setSession((old: OperatorAnswer | "none" | "ended" | undefined) => (typeof old === "object" ? now : old)),
  );
  useEffect(() => void enter(), []);
  if (refused)
    return html`<main class="sign-in"><${Problem} refused=${refused} retry=${() => location.reload()} /></main>`;
  if (session === undefined) return html`<p class="late" role="status">${T.common.loading}</p>`;
  if (typeof session === "string")
    return html`<${OperatorSignIn} isEnded=${session === "ended"} onEntered=${() => void enter()} />`;
  const [at = ""] = place.path;
  const found = PAGES.find((page) => page.at === at);
  return html`<${Shell} pages=${PAGES} at=${at} name=${place.path.slice(1).at(-1)} who=${T.operator.you} onSignOut=${() => out.run()}>
    <${Problem} refused=${out.refused} />
    ${
      found
        ? html`<${found.Page} key=${at} session=${session} place=${place} />`
        : html`<h1>${T.common.notFound}</h1><p><a href=${hrefOf([])}>${T.common.home}</a></p>`
    }
  </${Shell}>`;
}

const host = document.getElementById("app");
if (host) render(html`<${App} />`, host);
