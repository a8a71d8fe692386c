/** Loading states: what a page has loaded, is loading, or could not load. */
import { ApiError, ask } from "./api.ts";
import { useCallback, useLayoutEffect, useRef, useState } from "./view.ts";

export interface AnswerState<T> {
  /** The newest answer; it stays while it is loaded again, and while that for another path is loaded. */
  readonly data: T | undefined;
  readonly refused: ApiError | undefined;
  readonly isLoading: boolean;
  /** Loads it again. */
  readonly reload: () => void;
}

/** Loads `path` now, and whenever it changes. Undefined: nothing is loaded. */
export function useAnswer<T>(path: string | undefined): AnswerState<T> {
  const [state, setState] = useState<Omit<AnswerState<T>, "reload">>(EMPTY);
  const [turn, setTurn] = useState(0);
  // Before the page is painted: the answer for another path stays until this one comes, and must not look like the newest.
  useLayoutEffect(() => {
    if (path === undefined) return;
    const gone = new AbortController();
    setState(({ data }) => ({ data, refused: undefined, isLoading: true }));
    ask<T>(path, { signal: gone.signal }).then(
      (data) => gone.signal.aborted || setState({ data, refused: undefined, isLoading: false }),
      (error: unknown) => {
        if (gone.signal.aborted) return;
        setState(({ data }) => ({ data, refused: asRefused(error), isLoading: false }));
      },
    );
    return () => gone.abort();
  }, [path, turn]);
  const reload = useCallback(() => setTurn((old) => old + 1), []);
  return { ...state, reload };
}

const EMPTY = { data: undefined, refused: undefined, isLoading: true };

export interface Action<A extends unknown[]> {
  readonly run: (...args: A) => Promise<void>;
  readonly isRunning: boolean;
  readonly refused: ApiError | undefined;
  readonly forget: () => void;
}

/** A write. While it runs, a second click does nothing; after a failure, the error stays visible. */
export function useAction<A extends unknown[]>(work: (...args: A) => Promise<void>): Action<A> {
  const [isRunning, setRunning] = useState(false);
  const [refused, setRefused] = useState<ApiError | undefined>(undefined);
  // State updates arrive one render later, so two immediate clicks need a mark that is set at once.
  const busy = useRef(false);
  const newest = useRef(work);
  newest.current = work;
  const run = useCallback(async (...args: A) => {
    if (busy.current) return;
    busy.current = true;
    setRunning(true);
    setRefused(undefined);
    try {
      await newest.current(...args);
    } catch (error) {
      // Leaving the page aborts its request, which is not a failure.
      if (!(error instanceof DOMException && error.name === "AbortError")) setRefused(asRefused(error));
    } finally {
      busy.current = false;
      setRunning(false);
    }
  }, []);
  const forget = useCallback(() => setRefused(undefined), []);
  return { run, isRunning, refused, forget };
}

function asRefused(error: unknown): ApiError {
  if (error instanceof ApiError) return error;
  // A defect of the page: it is in the browser's log, and the person sees that the outcome is unknown.
  console.error(error);
  return new ApiError(0, "page_failed", String(error), "");
}
