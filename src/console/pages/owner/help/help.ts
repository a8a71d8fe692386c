/** Help: addresses for clients, errors, finding and explaining a request, and support. */
import { hrefOf } from "../../parts/router.ts";
import { html, type VNode } from "../../parts/view.ts";
import { T } from "../../texts/texts.ts";
import type { PageProps } from "../session.ts";
import { Addresses } from "./addresses.ts";
import { Errors } from "./errors.ts";
import { Explain } from "./explain.ts";
import { FindRequest } from "./find-request.ts";
import { Support } from "./support.ts";

const SECTIONS = ["addresses", "errors", "request", "explain", "support"] as const;

export function Help({ session, place }: PageProps): VNode {
  const words = T.owner.help;
  const at = SECTIONS.find((one) => one === place.path[1]) ?? "addresses";
  const shown = {
    addresses: () => html`<${Addresses} />`,
    errors: () => html`<${Errors} />`,
    request: () => html`<${FindRequest} />`,
    explain: () => html`<${Explain} account=${session.account} />`,
    support: () => html`<${Support} session=${session} />`,
  };
  return html`<h1>${words.title}</h1>
    <nav aria-label=${words.sections}><ul class="choice">${SECTIONS.map(
      (one) =>
        html`<li><a href=${hrefOf(["help", one])} aria-current=${one === at ? "page" : undefined}>${words[one]}</a></li>`,
    )}</ul></nav>
    ${shown[at]()}`;
}
