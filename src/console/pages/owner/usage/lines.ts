/** The ledger, newest line first, page by page. */
import type { OwnLineAnswer, OwnLinesAnswer } from "../../../answers/own-usage.ts";
import { ask } from "../../parts/api.ts";
import { csv, download } from "../../parts/csv.ts";
import { change, count, instant, usd } from "../../parts/format.ts";
import { useAction, useAnswer } from "../../parts/load.ts";
import { go, hrefOf } from "../../parts/router.ts";
import { html, useLayoutEffect, useRef, useState, type VNode } from "../../parts/view.ts";
import { Button, Field, Problem, Table, type TableColumn } from "../../parts/widgets.ts";
import { T } from "../../texts/texts.ts";
import type { KeyNames } from "../key-names.ts";
import { useModelNames } from "../model-names.ts";
import { payingCard } from "./paying-card.ts";
import type { UsageSpan } from "./spans.ts";

interface LinesProps {
  readonly span: UsageSpan;
  readonly keyNames: KeyNames;
  readonly query: URLSearchParams;
}

const PAGE = "50";
const CSV_PAGE = "200";

export function Lines({ span, keyNames, query }: LinesProps): VNode {
  const [key, model] = [query.get("key") ?? "", query.get("model") ?? ""];
  const wanted = new URLSearchParams({
    since: span.since,
    until: span.until,
    ...(key && { key }),
    ...(model && { model }),
  });
  return html`<${Filters} keyNames=${keyNames} chosen=${{ key, model }} query=${query} />
    <${Pages} key=${String(wanted)} wanted=${String(wanted)} keyNames=${keyNames} />`;
}

interface FiltersProps {
  readonly keyNames: KeyNames;
  readonly chosen: { readonly key: string; readonly model: string };
  readonly query: URLSearchParams;
}

function Filters({ keyNames, chosen, query }: FiltersProps): VNode {
  const words = T.owner.usage;
  const models = useModelNames();
  const choose = (name: "key" | "model") => (event: Event) => {
    const value = (event.target as HTMLSelectElement).value;
    go(hrefOf(["usage"], { ...Object.fromEntries(query), [name]: value || undefined }));
  };
  const keys = [...keyNames.values()];
  const choices = (all: string, now: string, some: readonly (readonly [string, string])[]) =>
    [["", all] as const, ...(now && !some.some(([value]) => value === now) ? [[now, now] as const] : []), ...some].map(
      ([value, title]) => html`<option value=${value} selected=${value === now}>${title}</option>`,
    );
  return html`<div class="side-by-side">
    <${Field} label=${words.key}>${({ id }: { id: string }) =>
      html`<select id=${id} onChange=${choose("key")}>${choices(
        words.allKeys,
        chosen.key,
        keys.map((one) => [one.id, one.name ?? one.id]),
      )}</select>`}</${Field}>
    <${Field} label=${words.model}>${({ id }: { id: string }) =>
      html`<select id=${id} onChange=${choose("model")}>${choices(
        words.allModels,
        chosen.model,
        models.map((name) => [name, name]),
      )}</select>`}</${Field}>
  </div>`;
}

function Pages({ wanted, keyNames }: { readonly wanted: string; readonly keyNames: KeyNames }): VNode {
  const words = T.owner.usage;
  const [before, setBefore] = useState<number | undefined>(undefined);
  const [earlier, setEarlier] = useState<readonly OwnLineAnswer[]>([]);
  const loaded = useAnswer<OwnLinesAnswer>(
    `/lines?${wanted}&limit=${PAGE}${before === undefined ? "" : `&before=${before}`}`,
  );
  const { data, isLoading, refused, reload } = loaded;
  // The previous answer stays while the next one is loading; until then its lines must not be shown twice.
  const [taken, setTaken] = useState<OwnLinesAnswer | undefined>(undefined);
  const rows = data === taken ? earlier : [...earlier, ...(data?.items ?? [])];
  const older = () => {
    if (!data || data.next === null || data === taken) return;
    setTaken(data);
    setEarlier([...earlier, ...data.items]);
    setBefore(data.next);
  };
  const isThrough = data && data.items.length < Number(PAGE) && data.searched_to !== null;
  return html`<div class="panel" aria-busy=${isLoading}>
    <${Problem} refused=${refused} retry=${reload} />
    ${
      data || refused
        ? html`<${Table} caption=${words.ledger} columns=${columnsOf(keyNames)} rows=${rows} keyOf=${(line: OwnLineAnswer) => String(line.seq)} empty=${words.ledgerEmpty} />`
        : html`<p class="faint">${T.common.loading}</p>`
    }
    ${isThrough && html`<p class="faint">${words.searchedTo(instant(data.searched_to ?? ""))}</p>`}
    ${
      data &&
      data.next !== null &&
      html`<p><${Button} kind="quiet" isRunning=${isLoading} onClick=${older}>${isThrough ? words.goOn : words.older}</${Button}></p>`
    }
  </div>
  ${rows.length > 0 && html`<${Download} wanted=${wanted} keyNames=${keyNames} />`}`;
}

function columnsOf(keyNames: KeyNames): readonly TableColumn<OwnLineAnswer>[] {
  const words = T.owner.usage;
  return [
    { title: words.when, cell: ({ at }) => html`<time datetime=${at} title=${at}>${instant(at)}</time>` },
    { title: words.what, cell: (line) => html`<span>${whatOf(line)}</span>` },
    { title: words.key, cell: ({ key }) => key && html`<bdi>${keyNames.get(key)?.name ?? key}</bdi>` },
    {
      title: words.amount,
      isNumber: true,
      cell: (line) => change(line.kind === "usage" ? `-${line.usd}` : line.change_usd),
      below: (line) => {
        const card = payingCard(line);
        return card !== undefined && words.paidByCard(card);
      },
    },
    { title: words.balance, isNumber: true, cell: (line) => usd(line.balance_usd) },
  ];
}

function whatOf(line: OwnLineAnswer): VNode {
  const words = T.owner.usage;
  if (line.kind !== "usage") return html`<span>${words.kinds[line.kind]}<small>${line.reference}</small></span>`;
  const tokens = line.charge?.tokens ?? [];
  const sum = (some: typeof tokens) => count(some.reduce((all, one) => all + one.count, 0));
  const input = tokens.filter(({ kind }) => kind !== "output");
  const output = tokens.filter(({ kind }) => kind === "output");
  return html`<span><a href=${hrefOf(["usage", line.reference])}>${line.model || words.noModel}</a>
    <small>${words.tokensInOut(sum(input), sum(output))}</small></span>`;
}

/** Downloads all matching lines as a file, page by page, until the page is left. */
function Download({ wanted, keyNames }: { readonly wanted: string; readonly keyNames: KeyNames }): VNode {
  const words = T.owner.usage;
  const [lines, setLines] = useState(0);
  const gone = useRef<AbortController>(null);
  // From the first moment at which it can be pressed.
  useLayoutEffect(() => () => gone.current?.abort(), []);
  const action = useAction(async () => {
    const aborter = new AbortController();
    gone.current = aborter;
    const rows: OwnLineAnswer[] = [];
    let next: number | null | undefined;
    do {
      const before = next === undefined ? "" : `&before=${next}`;
      const page: OwnLinesAnswer = await ask(`/lines?${wanted}&limit=${CSV_PAGE}${before}`, { signal: aborter.signal });
      rows.push(...page.items);
      setLines(rows.length);
      next = page.next;
    } while (next !== null);
    const { since = "", until = "" } = Object.fromEntries(new URLSearchParams(wanted));
    download(`ledger-${since}-${until}.csv`, asCsv(rows, keyNames));
  });
  return html`<${Button} isRunning=${action.isRunning} onClick=${() => action.run()}>${T.common.csv}</${Button}>
    ${action.isRunning && html`<span role="status" class="faint"> ${words.csvWorking(lines)}</span>`}
    <${Problem} refused=${action.refused} />`;
}

const KINDS = ["input", "cached_input", "cache_write", "cache_write_1h", "output"] as const;

function asCsv(rows: readonly OwnLineAnswer[], keyNames: KeyNames): string {
  const head = [
    "at",
    "kind",
    "reference",
    "model",
    "group",
    "key",
    "key_name",
    "usd",
    "change_usd",
    "balance_usd",
    "paid_by",
  ];
  const more = [
    ...KINDS.flatMap((kind) => [`${kind}_tokens`, `${kind}_usd_per_million`]),
    "multiplier",
    "hold_usd",
    "computed_usd",
    "why",
  ];
  const body = rows.map((line) => [
    line.at,
    line.kind,
    line.reference,
    line.model,
    line.group,
    line.key,
    keyNames.get(line.key)?.name ?? "",
    line.usd,
    line.change_usd,
    line.balance_usd,
    line.paid_by ?? "",
    ...KINDS.flatMap((kind) => {
      const one = line.charge?.tokens.find((tokens) => tokens.kind === kind);
      return [one?.count ?? "", one?.price_usd ?? ""];
    }),
    line.charge?.multiplier ?? "",
    line.charge?.hold_usd ?? "",
    line.charge?.computed_usd ?? "",
    line.charge?.why ?? "",
  ]);
  return csv([[...head, ...more], ...body]);
}
