/** The keys of an account, and a form to create one. */
import type { AccountAnswer, ListedKeyAnswer } from "../../../answers/answers.ts";
import { ask } from "../../parts/api.ts";
import { fromNow, instant } from "../../parts/format.ts";
import type { OnceRunner } from "../../parts/once.ts";
import { hrefOf } from "../../parts/router.ts";
import { html, type VNode } from "../../parts/view.ts";
import { Code } from "../../parts/widgets.ts";
import { T } from "../../texts/texts.ts";
import { ListingTable, usePages } from "../common/pages.ts";
import { State } from "../common/words.ts";
import { choices, type Typed, Write } from "../common/write.ts";
import type { OperatorPageProps } from "../session.ts";

const W = T.operator.keys;

interface KeysProps {
  readonly account: AccountAnswer;
  readonly session: OperatorPageProps["session"];
}

const COLUMNS = [
  {
    title: W.name,
    cell: (row: ListedKeyAnswer) =>
      html`<a href=${hrefOf(["accounts", row.account, row.id])}><bdi>${row.name ?? row.id}</bdi></a>${row.name !== null && html`<br /><small>${row.id}</small>`}`,
  },
  { title: T.operator.state, cell: (row: ListedKeyAnswer) => html`<${State} of=${row.status} />` },
  { title: T.operator.group, cell: (row: ListedKeyAnswer) => row.group },
  {
    title: W.lastUsed,
    cell: (row: ListedKeyAnswer) => (row.last_used === null ? T.common.never : fromNow(row.last_used.at)),
  },
  {
    title: W.expires,
    cell: (row: ListedKeyAnswer) => (row.expires_at === null ? T.common.never : instant(row.expires_at)),
  },
];

export function Keys({ account, session }: KeysProps): VNode {
  const base = `/accounts/${encodeURIComponent(account.name)}/keys`;
  const listing = usePages<ListedKeyAnswer>(`${base}?limit=50`);
  const create = async ({ group = "", name = "" }: Typed, once: OnceRunner) => {
    const body = (id: string) => ({ group, ...(name && { name }), idempotency_id: id });
    const made = await once((id) => ask<{ readonly key: string }>(base, { method: "POST", body: body(id) }));
    return shownOnce(made.key);
  };
  return html`<section><div class="row apart"><h2>${W.title}</h2>
    ${
      account.status !== "closed" &&
      html`<${Write} deedName="key" label=${W.create} about=${account.name} words=${W.createWords} send=${create} onDone=${listing.reload} fields=${[
        { name: "group", label: T.operator.group, options: choices(session.groups) },
        { name: "name", label: W.keyName, hint: W.keyNameHint },
      ]} />`
    }</div>
    <${ListingTable} listing=${listing} caption=${W.title} columns=${COLUMNS} keyOf=${(row: ListedKeyAnswer) => row.id} empty=${account.status === "closed" ? W.noneClosed : W.none} />
  </section>`;
}

/** A key's text, which is shown only once. */
export function shownOnce(key: string): VNode {
  return html`<p class="note warn" role="status">${W.shownOnce}</p><${Code} label=${W.key} text=${key} />`;
}
