/**
 * Live figures of the gateway as a stream. Not an EventSource, because it cannot send the header that identifies these
 * pages.
 */
import type { LiveAnswer } from "../../../answers/live.ts";
import { ask } from "../../parts/api.ts";
import { useEffect, useState } from "../../parts/view.ts";

/** Number of snapshots in the charts: five minutes. */
const DRAWN_MAX = 300;
const AGAIN_MS = 2_000;

export interface LiveState {
  /** Oldest first. */
  readonly snapshots: readonly LiveAnswer[];
  readonly isConnected: boolean;
}

/** Watches while the page is shown. When a stream ends or breaks, it connects again. */
export function useLive(): LiveState {
  const [state, setState] = useState<LiveState>({ snapshots: [], isConnected: false });
  useEffect(() => {
    const gone = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const take = (snapshot: LiveAnswer) =>
      setState(({ snapshots }: LiveState) => ({
        snapshots: [...snapshots.slice(1 - DRAWN_MAX), snapshot],
        isConnected: true,
      }));
    const watch = () =>
      read(gone.signal, take)
        .catch(() => {})
        .then(() => {
          if (gone.signal.aborted) return;
          setState((old: LiveState) => ({ ...old, isConnected: false }));
          timer = setTimeout(watch, AGAIN_MS);
        });
    void watch();
    return () => {
      clearTimeout(timer);
      gone.abort();
    };
  }, []);
  return state;
}

/** Resolves when the stream has ended. */
async function read(signal: AbortSignal, take: (snapshot: LiveAnswer) => void): Promise<void> {
  const api = document.documentElement.dataset.api ?? "";
  const response = await fetch(`${api}/live`, {
    headers: { "x-tollgate-console": "1" },
    credentials: "same-origin",
    signal,
  });
  // If the session has ended, any other request of the page reports it and shows the sign-in page.
  if (response.status === 401) await ask("/session");
  if (!response.ok || !response.body) return;
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const events = (rest + value).split("\n\n");
    rest = events.pop() ?? "";
    for (const event of events) {
      const [, json] = /^data: (.*)$/m.exec(event) ?? [];
      if (json !== undefined) take(JSON.parse(json) as LiveAnswer);
    }
  }
}
