/** The support contact, and a text with the four facts that support needs. */

import type { SessionAnswer } from "../../../answers/session.ts";
import { html, useState, type VNode } from "../../parts/view.ts";
import { Code, Field } from "../../parts/widgets.ts";
import { T } from "../../texts/texts.ts";
import type { FieldIds } from "../field-ids.ts";

/** Keys, complete or in part: they must not be sent to others. */
const KEY = /sk-[0-9A-Za-z_-]{8,}/g;

export function Support({ session }: { readonly session: SessionAnswer }): VNode {
  const words = T.owner.help;
  const [facts, setFacts] = useState({
    error: "",
    address: `${location.origin}/v1/chat/completions`,
    model: "",
    group: "",
  });
  const typed = (name: keyof typeof facts) => (event: Event) =>
    setFacts({ ...facts, [name]: (event.target as HTMLInputElement).value });
  const hasKey = Object.values(facts).some((text) => text.search(KEY) !== -1);
  const text = textOf(session.account, facts);
  const { email, url } = session.support;
  const mail = `mailto:${email}?subject=${encodeURIComponent("Tollgate")}&body=${encodeURIComponent(text)}`;
  const field = (name: "address" | "model" | "group", label: string) =>
    html`<${Field} label=${label}>${({ id }: FieldIds) => html`<input id=${id} list=${name === "group" ? "all-groups" : undefined} autocomplete="off" spellcheck="false" value=${facts[name]} onInput=${typed(name)} />`}</${Field}>`;
  return html`<section class="panel"><h2>${words.support}</h2>
    <p class="hint">${words.supportHint}</p>
    <${Field} label=${words.errorText} hint=${words.errorTextHint} wrong=${hasKey ? words.keyInText : undefined}>${({ id, describedBy }: FieldIds) => html`<textarea id=${id} aria-describedby=${describedBy} onInput=${typed("error")}></textarea>`}</${Field}>
    ${field("address", words.requestAddress)}
    ${field("model", words.modelTyped)}
    ${field("group", words.groupName)}
    <datalist id="all-groups">${session.groups.map((name) => html`<option value=${name}></option>`)}</datalist>
    <${Code} label=${words.supportText} text=${text} />
    ${email === null && url === null && html`<p>${words.noSupport}</p>`}
    <p class="row">
      ${email !== null && html`<a class="button" href=${mail}>${words.byMail(email)}</a>`}
      ${url !== null && html`<a class="button" href=${url} rel="noreferrer noopener" target="_blank">${words.byPage}</a>`}
    </p>
  </section>`;
}

function textOf(account: string, facts: { error: string; address: string; model: string; group: string }): string {
  const words = T.owner.help;
  const lines: readonly (readonly [string, string])[] = [
    [words.account, account],
    [words.requestAddress, facts.address],
    [words.modelTyped, facts.model],
    [words.groupName, facts.group],
    [words.errorText, facts.error],
  ];
  return lines
    .map(([title, text]) => `${title}${T.common.colon}${text.replaceAll(KEY, "sk-…").trim() || words.unfilled}`)
    .join("\n");
}
