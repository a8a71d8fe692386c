/** What was done and by whom, and what moved money: the audit of operators, and the ledger of an account. */
import { go, hrefOf } from "../../parts/router.ts";
import { html, useState, type VNode } from "../../parts/view.ts";
import { Button } from "../../parts/widgets.ts";
import { T } from "../../texts/texts.ts";
import { Input } from "../common/write.ts";
import type { OperatorPageProps } from "../session.ts";
import { AuditLines } from "./audit.ts";
import { Ledger } from "./ledger.ts";

const W = T.operator.records;

export function Records({ place }: OperatorPageProps): VNode {
  const [, of] = place.path;
  const account = place.query.get("account") ?? "";
  const isLedger = of === "ledger";
  const way = (href: string, title: string, isHere: boolean) =>
    html`<li><a href=${href} aria-current=${isHere ? "page" : undefined}>${title}</a></li>`;
  return html`<h1>${W.title}</h1>
    <nav class="tabs" aria-label=${W.title}><ul>
      ${way(hrefOf(["records"]), W.audit, !isLedger)}
      ${way(hrefOf(["records", "ledger"]), W.ledger, isLedger)}
    </ul></nav>
    ${isLedger ? html`<${LedgerSearch} key=${account} account=${account} />` : html`<${AuditLines} />`}`;
}

function LedgerSearch({ account }: { account: string }): VNode {
  const [typed, setTyped] = useState(account);
  const submitted = (event: Event) => {
    event.preventDefault();
    go(hrefOf(["records", "ledger"], { account: typed.trim() || undefined }));
  };
  return html`<form class="filters" role="search" onSubmit=${submitted}>
      <${Input} field=${{ name: "account", label: T.operator.account }} value=${typed} onValue=${setTyped} />
      <${Button} kind="main">${T.operator.search}</${Button}>
    </form>
    ${account === "" ? html`<p class="empty">${W.whichAccount}</p>` : html`<${Ledger} account=${account} />`}`;
}
