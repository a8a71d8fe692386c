/** The audit of operators and owners, and the ledger of an account. */
import { go, hrefOf } from "../../parts/router.ts";
import { html, useState, type VNode } from "../../parts/view.ts";
import { Button } from "../../parts/widgets.ts";
import { T } from "../../texts/texts.ts";
import { Input } from "../common/write.ts";
import type { OperatorPageProps } from "../session.ts";
import { AuditLines } from "./audit.ts";
import { Ledger, RequestLedger } from "./ledger.ts";

const W = T.operator.records;

export function Records({ place }: OperatorPageProps): VNode {
  const [, of] = place.path;
  const account = place.query.get("account") ?? "";
  const request = place.query.get("request") ?? "";
  const isLedger = of === "ledger";
  const way = (href: string, title: string, isHere: boolean) =>
    html`<li><a href=${href} aria-current=${isHere ? "page" : undefined}>${title}</a></li>`;
  return html`<h1>${W.title}</h1>
    <nav class="tabs" aria-label=${W.title}><ul>
      ${way(hrefOf(["records"]), W.audit, !isLedger)}
      ${way(hrefOf(["records", "ledger"]), W.ledger, isLedger)}
    </ul></nav>
    ${isLedger ? html`<${LedgerSearch} key=${`${account} ${request}`} account=${account} request=${request} />` : html`<${AuditLines} />`}`;
}

function LedgerSearch({ account, request }: { account: string; request: string }): VNode {
  const [typed, setTyped] = useState({ account, request });
  const submitted = (event: Event) => {
    event.preventDefault();
    const wanted = { account: typed.account.trim() || undefined, request: typed.request.trim() || undefined };
    go(hrefOf(["records", "ledger"], wanted));
  };
  const set = (name: keyof typeof typed) => (value: string) =>
    setTyped((old: typeof typed) => ({ ...old, [name]: value }));
  return html`<form class="filters" role="search" onSubmit=${submitted}>
      <${Input} field=${{ name: "account", label: T.operator.account }} value=${typed.account} onValue=${set("account")} />
      <${Input} field=${{ name: "request", label: W.request, hint: W.requestHint }} value=${typed.request} onValue=${set("request")} />
      <${Button} kind="main">${T.operator.search}</${Button}>
    </form>
    ${linesOf(account, request)}`;
}

function linesOf(account: string, request: string): VNode {
  if (account === "") return html`<p class="empty">${W.whichAccount}</p>`;
  if (request === "") return html`<${Ledger} account=${account} />`;
  return html`<${RequestLedger} account=${account} request=${request} />`;
}
