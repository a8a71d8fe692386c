/** All keys of an account, page by page. */
import type { ListedKeyAnswer } from "../../../answers/answers.ts";
import type { KeyListAnswer, KeySpendAnswer } from "../../../answers/own.ts";
import { fromNow, usd } from "../../parts/format.ts";
import { useAnswer } from "../../parts/load.ts";
import { go, hrefOf, isHere } from "../../parts/router.ts";
import { html, useState, type VNode } from "../../parts/view.ts";
import { Awaited, Badge, Button, Field, Table, type TableColumn } from "../../parts/widgets.ts";
import { T } from "../../texts/texts.ts";
import type { PageProps } from "../session.ts";
import { limitWords } from "./limit-words.ts";

const W = T.owner.keys;
const STATUSES = ["all", "normal", "suspended", "revoked"] as const;

export function KeyList({ session, place }: PageProps): VNode {
  const asked = { search: given(place, "search"), status: given(place, "status"), cursor: given(place, "cursor") };
  const query = new URLSearchParams(Object.entries(asked).filter((entry): entry is [string, string] => !!entry[1]));
  const spend = useAnswer<KeySpendAnswer>("/key-spend");
  const [turn, setTurn] = useState(0);
  const { search, status } = asked;
  const path = `/accounts/${encodeURIComponent(session.account)}/keys?${query}`;
  const again = () => {
    setTurn((now) => now + 1);
    spend.reload();
  };
  return html`<div class="row apart">
      <h1>${W.title}</h1>
      <a class="button main" href=${hrefOf(["keys", "new"])}>${W.create}</a>
    </div>
    <${Search} key=${`${search}|${status}`} search=${search ?? ""} status=${status ?? "all"} onAgain=${again} />
    <${Found} key=${`found ${turn} ${query}`} path=${path} asked=${asked} spend=${spend.data} onAgain=${again} />`;
}

interface FoundProps {
  /** Of the API, for this page of keys. */
  readonly path: string;
  readonly asked: Readonly<Record<"search" | "status" | "cursor", string | undefined>>;
  readonly spend: KeySpendAnswer | undefined;
  readonly onAgain: () => void;
}

function Found({ path, asked, spend, onAgain }: FoundProps): VNode {
  const keys = useAnswer<KeyListAnswer>(path);
  const { search, status, cursor } = asked;
  return html`<${Awaited} loaded=${{ ...keys, reload: onAgain }}>${({
    items,
    next,
  }: KeyListAnswer) => html`<section class="panel">
      <${Table}
        caption=${W.title}
        columns=${columnsFor(spend)}
        rows=${items}
        keyOf=${(key: ListedKeyAnswer) => key.id}
        empty=${search || status || cursor ? W.noneFound : W.none}
      />
      <p class="row">
        ${cursor && html`<a class="button" href=${hrefOf(["keys"], { search, status })}>${W.firstPage}</a>`}
        ${next !== null && html`<a class="button" href=${hrefOf(["keys"], { search, status, cursor: next })}>${W.nextPage}</a>`}
      </p>
    </section>`}</${Awaited}>`;
}

const given = ({ query }: PageProps["place"], name: string) => query.get(name) || undefined;

interface KeySearchProps {
  readonly search: string;
  readonly status: string;
  /** Called if the search is the one whose answer is shown, or was lost. */
  readonly onAgain: () => void;
}

function Search({ search, status, onAgain }: KeySearchProps): VNode {
  const [typed, setTyped] = useState(search);
  const look = (wanted: string) => {
    const href = hrefOf(["keys"], { search: typed || undefined, status: wanted === "all" ? undefined : wanted });
    if (isHere(href)) onAgain();
    else go(href);
  };
  const submitted = (event: Event) => {
    event.preventDefault();
    look(status);
  };
  return html`<form class="row search" role="search" onSubmit=${submitted}>
    <${Field} label=${W.search}>${({ id }: { id: string }) => html`<input
      id=${id}
      type="search"
      maxlength="64"
      value=${typed}
      onInput=${(event: Event) => setTyped((event.target as HTMLInputElement).value)}
    />`}</${Field}>
    <${Field} label=${W.status}>${({ id }: { id: string }) => html`<select
      id=${id}
      value=${status}
      onChange=${(event: Event) => look((event.target as HTMLSelectElement).value)}
    >${STATUSES.map((one) => html`<option value=${one}>${W.statuses[one]}</option>`)}</select>`}</${Field}>
    <${Button}>${W.find}</${Button}>
  </form>`;
}

function columnsFor(spend: KeySpendAnswer | undefined): readonly TableColumn<ListedKeyAnswer>[] {
  const spentOf = new Map(spend?.items.map((one) => [one.key_id, one]));
  return [
    { title: W.name, cell: (key) => html`<${KeyName} of=${key} />` },
    { title: W.group, cell: ({ group }) => group },
    { title: W.status, cell: (key) => html`<${KeyStatus} of=${key} />` },
    {
      title: W.lastUsed,
      cell: ({ last_used: use }) =>
        html`<span>${use ? fromNow(use.at) : T.common.never}${use?.by && html`<small>${W.by(use.by)}</small>`}</span>`,
    },
    {
      title: W.spend,
      isNumber: true,
      cell: ({ id }) => (spend ? usd(spentOf.get(id)?.usd ?? "0.00") : "…"),
      below: ({ id }) => spend && W.todayOf(usd(spentOf.get(id)?.today_usd ?? "0.00")),
    },
    { title: W.limits, cell: (key) => html`<${LimitsOf} of=${key} />` },
  ];
}

function KeyName({ of: { id, name } }: { of: ListedKeyAnswer }): VNode {
  return html`<span><a href=${hrefOf(["keys", id])}><bdi>${name ?? W.unnamed}</bdi></a><small class="mono">${id}</small></span>`;
}

const KINDS = { normal: "good", suspended: "warn", revoked: "bad" } as const;

export function KeyStatus({
  of: { status, expires_at },
}: {
  of: Pick<ListedKeyAnswer, "status" | "expires_at">;
}): VNode {
  const isOver = status !== "revoked" && expires_at !== null && Date.parse(expires_at) <= Date.now();
  if (isOver) return html`<${Badge} kind="bad">${W.expired}</${Badge}>`;
  return html`<${Badge} kind=${KINDS[status]}>${W.statuses[status]}</${Badge}>`;
}

function LimitsOf({ of: { limits, caps } }: { of: ListedKeyAnswer }): VNode {
  const own = limitWords(limits).join(" · ");
  const capped = limitWords(caps).join(" · ");
  return html`<span>${own || W.noLimits}${capped && html`<small>${W.words.capped(capped)}</small>`}</span>`;
}
