/** Lists that are loaded page by page. */
import { ApiError, ask } from "../../parts/api.ts";
import { html, useCallback, useLayoutEffect, useRef, useState, type VNode } from "../../parts/view.ts";
import { Button, Problem, Table, type TableColumn } from "../../parts/widgets.ts";
import { T } from "../../texts/texts.ts";

interface Paged<R> {
  readonly items: readonly R[];
  readonly next: string | number | null;
}

export interface Listing<R> {
  readonly rows: readonly R[];
  readonly hasMore: boolean;
  readonly isLoading: boolean;
  readonly refused: ApiError | undefined;
  /** Loads the page after those already loaded. */
  readonly more: () => void;
  /** Loads the first page again. */
  readonly reload: () => void;
}

/**
 * Loads the first page of `path`, and further pages on request.
 * @param cursor the query parameter for the start of a page
 */
export function usePages<R>(path: string | undefined, cursor = "cursor"): Listing<R> {
  const [rows, setRows] = useState<readonly R[]>([]);
  const [next, setNext] = useState<string | number | null>(null);
  const [refused, setRefused] = useState<ApiError | undefined>(undefined);
  const [isLoading, setLoading] = useState(true);
  const gone = useRef<AbortController>(null);
  const load = useCallback(
    (from: string | number | undefined) => {
      if (path === undefined) return;
      gone.current?.abort();
      const mine = new AbortController();
      gone.current = mine;
      setLoading(true);
      setRefused(undefined);
      const where = from === undefined ? "" : `${path.includes("?") ? "&" : "?"}${cursor}=${encodeURIComponent(from)}`;
      ask<Paged<R>>(path + where, { signal: mine.signal }).then(
        (page) => {
          if (mine.signal.aborted) return;
          setRows((old: readonly R[]) => (from === undefined ? page.items : [...old, ...page.items]));
          setNext(page.next);
          setLoading(false);
        },
        (error: unknown) => {
          if (mine.signal.aborted) return;
          setRefused(error instanceof ApiError ? error : new ApiError(0, "page_failed", String(error), ""));
          setLoading(false);
        },
      );
    },
    [path, cursor],
  );
  useLayoutEffect(() => {
    // The rows of another search must not look like the result of this one, not even until the page is painted again.
    setRows([]);
    setNext(null);
    load(undefined);
    return () => gone.current?.abort();
  }, [load]);
  const more = useCallback(() => next !== null && load(next), [load, next]);
  const reload = useCallback(() => load(undefined), [load]);
  return { rows, hasMore: next !== null, isLoading, refused, more, reload };
}

interface ListingTableProps<R> {
  readonly listing: Listing<R>;
  readonly caption: string;
  readonly columns: readonly TableColumn<R>[];
  readonly keyOf: (row: R) => string;
  readonly empty: string;
}

export function ListingTable<R>({ listing, caption, columns, keyOf, empty }: ListingTableProps<R>): VNode {
  const { rows, hasMore, isLoading, refused, more, reload } = listing;
  const isFirst = rows.length === 0 && isLoading;
  return html`<div aria-busy=${isLoading}>
    <${Problem} refused=${refused} retry=${reload} />
    ${isFirst ? html`<p class="faint">${T.common.loading}</p>` : !(refused && rows.length === 0) && html`<${Table} caption=${caption} columns=${columns} rows=${rows} keyOf=${keyOf} empty=${empty} />`}
    ${hasMore && html`<${Button} onClick=${more} isRunning=${isLoading}>${T.common.more}</${Button}>`}
  </div>`;
}
