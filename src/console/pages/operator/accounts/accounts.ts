/** Accounts: the list, or the account or key that the address names. */
import type { AccountAnswer } from "../../../answers/answers.ts";
import { ask } from "../../parts/api.ts";
import { usd } from "../../parts/format.ts";
import { go, hrefOf, isHere } from "../../parts/router.ts";
import { html, useState, type VNode } from "../../parts/view.ts";
import { Button } from "../../parts/widgets.ts";
import { T } from "../../texts/texts.ts";
import { ListingTable, usePages } from "../common/pages.ts";
import { State } from "../common/words.ts";
import { choices, Input, type Typed, Write } from "../common/write.ts";
import { KeyPage } from "../keys/key.ts";
import type { OperatorPageProps } from "../session.ts";
import { AccountPage } from "./account.ts";

const W = T.operator.accounts;
const STATES = ["normal", "suspended", "closed"] as const;

export function Accounts({ session, place }: OperatorPageProps): VNode {
  const [, name, key] = place.path;
  if (name !== undefined && key !== undefined)
    return html`<${KeyPage} key=${key} session=${session} account=${name} id=${key} />`;
  if (name !== undefined) return html`<${AccountPage} key=${name} session=${session} name=${name} />`;
  return html`<${AccountList} session=${session} place=${place} />`;
}

const COLUMNS = [
  { title: W.name, cell: (row: AccountAnswer) => html`<a href=${hrefOf(["accounts", row.name])}>${row.name}</a>` },
  { title: T.operator.state, cell: (row: AccountAnswer) => html`<${State} of=${row.status} />` },
  { title: T.operator.plan, cell: (row: AccountAnswer) => row.plan },
  { title: W.labels, cell: (row: AccountAnswer) => labelsOf(row) },
  { title: W.available, cell: (row: AccountAnswer) => usd(row.available_usd), isNumber: true },
  { title: W.spent, cell: (row: AccountAnswer) => usd(row.spent_usd), isNumber: true },
];

function labelsOf({ labels }: AccountAnswer): VNode | string {
  const all = Object.entries(labels);
  if (all.length === 0) return "–";
  return html`${all.map(([name, value], at) => html`${at > 0 && ", "}${name}=<bdi>${value}</bdi>`)}`;
}

/** The search is part of the address, so that the back button and a reload restore it. */
function AccountList({ session, place }: OperatorPageProps): VNode {
  const asked = (name: string) => place.query.get(name) ?? "";
  const query = new URLSearchParams(
    ["search", "label", "status"]
      .map((name) => [name, asked(name)] as [string, string])
      .filter(([, value]) => value !== ""),
  );
  const listing = usePages<AccountAnswer>(`/accounts?limit=50${query.size > 0 ? `&${query}` : ""}`);
  const create = async ({ name = "", plan }: Typed) => {
    await ask("/accounts", { method: "POST", body: { name, plan } });
    go(hrefOf(["accounts", name]));
    return undefined;
  };
  return html`<div class="row apart"><h1>${W.title}</h1>
    <${Write} kind="main" label=${W.create} about="" send=${create} fields=${[
      { name: "name", label: W.name, hint: W.nameHint },
      { name: "plan", label: T.operator.plan, options: choices(session.plans) },
    ]} /></div>
    <${Search} key=${String(query)} place=${place} onAgain=${listing.reload} />
    <${ListingTable} listing=${listing} caption=${W.title} columns=${COLUMNS} keyOf=${(row: AccountAnswer) => row.id}
      empty=${query.size > 0 ? W.noneFound : W.noneYet} />`;
}

type AccountSearchProps = Pick<OperatorPageProps, "place"> & {
  /** Called if the search is the one whose answer is shown, or was lost. */
  readonly onAgain: () => void;
};

function Search({ place, onAgain }: AccountSearchProps): VNode {
  const [typed, setTyped] = useState<Typed>({
    search: place.query.get("search") ?? "",
    label: place.query.get("label") ?? "",
    status: place.query.get("status") ?? "",
  });
  const submitted = (event: Event) => {
    event.preventDefault();
    const wanted = Object.fromEntries(Object.entries(typed).map(([name, value]) => [name, value.trim() || undefined]));
    const href = hrefOf(["accounts"], wanted);
    if (isHere(href)) onAgain();
    else go(href);
  };
  const states = [["", W.anyState] as const, ...STATES.map((one) => [one, T.operator.states[one]] as const)];
  const fields = [
    { name: "search", label: T.operator.search, hint: W.search },
    { name: "label", label: W.label, hint: W.labelHint },
    { name: "status", label: T.operator.state, options: states },
  ];
  return html`<form class="filters" role="search" onSubmit=${submitted}>
    ${fields.map((field) => html`<${Input} field=${field} value=${typed[field.name]} onValue=${(value: string) => setTyped((old: Typed) => ({ ...old, [field.name]: value }))} />`)}
    <${Button} kind="main">${T.operator.search}</${Button}>
  </form>`;
}
