/** The newest writes of operators and owners; it can follow new ones. */
import type { AuditLineAnswer } from "../../../answers/answers.ts";
import { ApiError, ask } from "../../parts/api.ts";
import { instant } from "../../parts/format.ts";
import { html, useEffect, useState, type VNode } from "../../parts/view.ts";
import { Problem, Table } from "../../parts/widgets.ts";
import { T } from "../../texts/texts.ts";
import { useEvery } from "../common/follow.ts";
import { State } from "../common/words.ts";
import { Input } from "../common/write.ts";

interface AuditAnswer {
  readonly items: readonly AuditLineAnswer[];
  readonly run: string;
  readonly newest: number;
}

const FOLLOW_EVERY_MS = 2_000;
/** Number of lines shown; older ones are in the log. */
const LINES_MAX = 1_000;
const W = T.operator.records;

const DEEDS: Readonly<Record<string, string>> = T.operator.deeds;
const FACTS: Readonly<Record<string, string>> = T.operator.factNames;
const WAYS: Readonly<Record<string, string>> = T.owner.access.methods;
const CAUSES: Readonly<Record<string, string>> = T.operator.causes;

/** A gateway of another version may have other actions; those are shown by the API's name. */
const deedOf = ({ what }: AuditLineAnswer): string => DEEDS[what] ?? what;

const causeOf = ({ cause }: AuditLineAnswer): string => (cause === null ? "" : (CAUSES[cause] ?? cause));

/** Lists are given as the number of their entries, in English. */
const factOf = (name: string, value: string): string => {
  const [, entries] = /^(\d+) named$/.exec(value) ?? [];
  return name === "way" ? (WAYS[value] ?? value) : entries ? W.entries(entries) : value;
};

/** What the search looks at: the line as it is shown, and the API's names. */
const searched = (line: AuditLineAnswer): string =>
  `${deedOf(line)} ${causeOf(line)} ${JSON.stringify(line)}`.toLowerCase();

const COLUMNS = [
  {
    title: W.at,
    cell: (row: AuditLineAnswer) => html`<time datetime=${row.at} title=${row.at}>${instant(row.at)}</time>`,
  },
  {
    title: W.who,
    cell: (row: AuditLineAnswer) => html`<span class="writer">${row.who}</span><small>${row.from}</small>`,
  },
  { title: W.what, cell: (row: AuditLineAnswer) => html`<span class="what" title=${row.what}>${deedOf(row)}</span>` },
  { title: W.target, cell: (row: AuditLineAnswer) => html`<bdi>${row.target}</bdi>` },
  {
    title: W.facts,
    cell: (row: AuditLineAnswer) =>
      Object.entries(row.facts).map(
        ([name, value]) =>
          html`<small class="fact">${FACTS[name] ?? name.replaceAll("_", " ")}${T.common.colon}<bdi>${factOf(name, value)}</bdi></small>`,
      ),
  },
  {
    title: W.outcome,
    cell: (row: AuditLineAnswer) =>
      html`<${State} of=${row.outcome} />${row.cause && html`<br /><small class="cause" title=${row.cause}>${causeOf(row)}</small>`}`,
  },
];

export function AuditLines(): VNode {
  const [lines, setLines] = useState<readonly AuditLineAnswer[] | undefined>(undefined);
  const [place, setPlace] = useState<{ readonly run: string; readonly newest: number } | undefined>(undefined);
  const [refused, setRefused] = useState<ApiError | undefined>(undefined);
  const [isFollowing, setFollowing] = useState(true);
  const [search, setSearch] = useState("");
  const look = async () => {
    try {
      const from = place === undefined ? "limit=200" : `limit=200&after=${place.newest}&run=${place.run}`;
      const page = await ask<AuditAnswer>(`/audit?${from}`);
      // With `after`, lines come oldest first; the page shows the newest first.
      const fresh = place === undefined ? page.items : page.items.toReversed();
      const known = place?.run === page.run ? (lines ?? []) : [];
      const newest = place === undefined ? page.newest : (page.items.at(-1)?.seq ?? page.newest);
      setLines([...fresh, ...known].slice(0, LINES_MAX));
      setPlace({ run: page.run, newest });
      setRefused(undefined);
    } catch (error) {
      setRefused(error instanceof ApiError ? error : new ApiError(0, "page_failed", String(error), ""));
    }
  };
  useEffect(() => void look(), []);
  useEvery(isFollowing ? FOLLOW_EVERY_MS : undefined, () => void look());
  const wanted = search.trim().toLowerCase();
  const found = lines?.filter((line) => wanted === "" || searched(line).includes(wanted));
  return html`<p class="faint">${W.auditIntro}</p><div class="filters" role="search">
      <${Input} field=${{ name: "search", label: T.operator.search, hint: W.searchHint }} value=${search} onValue=${setSearch} />
      <${Follow} isFollowing=${isFollowing} onFollow=${setFollowing} />
    </div>
    <${Problem} refused=${refused} retry=${() => void look()} />
    ${found ? html`<${Table} caption=${W.audit} columns=${COLUMNS} rows=${found} keyOf=${(row: AuditLineAnswer) => String(row.seq)} empty=${wanted === "" ? W.noLines : W.noLineFound} />` : !refused && html`<p class="faint">${T.common.loading}</p>`}`;
}

export function Follow({ isFollowing, onFollow }: { isFollowing: boolean; onFollow: (on: boolean) => void }): VNode {
  const changed = (event: Event) => onFollow((event.target as HTMLInputElement).checked);
  return html`<label class="check"><input type="checkbox" checked=${isFollowing} onChange=${changed} /> ${W.follow}</label>`;
}
