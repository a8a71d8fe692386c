/** Polling while the page is visible. */
import { useEffect, useRef } from "../../parts/view.ts";

/** Calls `look` every `ms` while the page is visible. Undefined: never. */
export function useEvery(ms: number | undefined, look: () => void): void {
  const newest = useRef(look);
  newest.current = look;
  useEffect(() => {
    if (ms === undefined) return;
    const timer = setInterval(() => document.visibilityState === "visible" && newest.current(), ms);
    return () => clearInterval(timer);
  }, [ms]);
}
