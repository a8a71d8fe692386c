/** Live figures of the gateway, as they come. An EventSource could not show that this very page asks. */
import type { LiveAnswer } from "../../../answers/live.ts";
import { ask } from "../../parts/api.ts";
import { useEffect, useState } from "../../parts/view.ts";

/** How many snapshots are drawn: five minutes. */
const DRAWN_MAX = 300;
const AGAIN_MS = 2_000;

export interface LiveState {
  /** Oldest first. */
  readonly snapshots: readonly LiveAnswer[];
  readonly isConnected: boolean;
}

/** Watches while the page is shown. A stream that ends, or breaks, is asked for again. */
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
  // Whoever is signed out is told so by any other question, and shown the door.
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
