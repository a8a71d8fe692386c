/** Usage, loaded in parts that are added up exactly. */
import type { CostedTotalAnswer } from "../../../answers/answers.ts";
import { ApiError, ask } from "../../parts/api.ts";
import { useCallback, useEffect, useState } from "../../parts/view.ts";
import { nanoOf, textOf } from "../common/words.ts";

export type Costs = CostedTotalAnswer;

interface UsageAnswer<R> {
  readonly items: readonly R[];
  readonly next: string | null;
  readonly since: string;
  readonly until: string;
}

interface UsageState<R> {
  readonly rows: readonly R[];
  readonly since: string | undefined;
  readonly until: string | undefined;
  readonly isLoading: boolean;
  readonly refused: ApiError | undefined;
}

const EMPTY = { rows: [], since: undefined, until: undefined, isLoading: true, refused: undefined };

/** Loads all parts. @param keyOf identifies rows of different parts that belong together */
export function useUsage<R extends Costs>(path: string, keyOf: (row: R) => string) {
  const [state, setState] = useState<UsageState<R>>(EMPTY);
  const [turn, setTurn] = useState(0);
  useEffect(() => {
    const gone = new AbortController();
    setState(EMPTY);
    everyPart<R>(path, keyOf, gone.signal).then(
      (whole) => gone.signal.aborted || setState({ ...whole, isLoading: false, refused: undefined }),
      (error: unknown) => {
        if (gone.signal.aborted) return;
        const refused = error instanceof ApiError ? error : new ApiError(0, "page_failed", String(error), "");
        setState({ ...EMPTY, isLoading: false, refused });
      },
    );
    return () => gone.abort();
  }, [path, turn]);
  const reload = useCallback(() => setTurn((old: number) => old + 1), []);
  return { ...state, reload };
}

async function everyPart<R extends Costs>(path: string, keyOf: (row: R) => string, signal: AbortSignal) {
  const rows = new Map<string, R>();
  let next: string | null = null;
  let span: Pick<UsageAnswer<R>, "since" | "until">;
  do {
    const sign: string = path.includes("?") ? "&" : "?";
    const where: string = next === null ? "" : `${sign}cursor=${encodeURIComponent(next)}`;
    const page: UsageAnswer<R> = await ask<UsageAnswer<R>>(path + where, { signal });
    span = { since: page.since, until: page.until };
    for (const row of page.items) {
      const known = rows.get(keyOf(row));
      rows.set(keyOf(row), known ? { ...row, ...both(known, row) } : row);
    }
    next = page.next;
  } while (next !== null);
  return { rows: [...rows.values()], ...span };
}

/** The sum of two, computed in whole nano-dollars. */
export function both(one: Costs, other: Costs): Costs {
  const usd = (name: "usd" | "cost_usd" | "absorbed_usd" | "margin_usd") =>
    textOf(nanoOf(one[name]) + nanoOf(other[name]));
  return {
    usd: usd("usd"),
    cost_usd: usd("cost_usd"),
    absorbed_usd: usd("absorbed_usd"),
    margin_usd: usd("margin_usd"),
    requests: one.requests + other.requests,
    input_tokens: one.input_tokens + other.input_tokens,
    cached_input_tokens: one.cached_input_tokens + other.cached_input_tokens,
    cache_write_tokens: one.cache_write_tokens + other.cache_write_tokens,
    output_tokens: one.output_tokens + other.output_tokens,
    reasoning_tokens: one.reasoning_tokens + other.reasoning_tokens,
  };
}
