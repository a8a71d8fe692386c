/**
 * The key with which this page sends requests: valid for an hour, created when it is first needed, and revoked when the
 * page is left. It is kept only in the page's memory.
 */
import type { KeyAnswer } from "../../../answers/answers.ts";
import { ApiError, ask, newOnceId } from "../../parts/api.ts";
import { useCallback, useLayoutEffect, useRef } from "../../parts/view.ts";

const LASTS_MS = 3_600_000;
/** A key is no longer used this long before its end. */
const SPARE_MS = 60_000;
const NAME = "console";

interface Made {
  readonly id: string;
  readonly text: string;
  readonly group: string;
  readonly endMs: number;
}

/** @returns a function that returns the text of a key in a group, and throws ApiError */
export function useConsoleKey(account: string): (group: string) => Promise<string> {
  const made = useRef<Made | undefined>(undefined);
  const isGone = useRef(false);
  // The id stays the same until an answer arrives, so that a repeated request creates no second key.
  const once = useRef(newOnceId());
  const drop = useCallback((keepalive: boolean) => {
    const old = made.current;
    made.current = undefined;
    // A key that could not be revoked expires within the hour.
    if (old) void ask(`/keys/${old.id}/revoke`, { method: "POST", keepalive }).catch(() => {});
  }, []);
  useLayoutEffect(() => {
    isGone.current = false;
    const left = () => drop(true);
    addEventListener("pagehide", left);
    return () => {
      isGone.current = true;
      removeEventListener("pagehide", left);
      drop(true);
    };
  }, [drop]);
  return useCallback(
    async (group: string) => {
      const now = made.current;
      if (now && now.group === group && now.endMs - SPARE_MS > Date.now()) return now.text;
      drop(false);
      const endMs = Date.now() + LASTS_MS;
      const body = { group, name: NAME, expires_at: new Date(endMs).toISOString(), idempotency_id: once.current };
      const path = `/accounts/${encodeURIComponent(account)}/keys`;
      const answer = await ask<KeyAnswer & { readonly key: string }>(path, { method: "POST", body }).catch((error) => {
        // The key of the first attempt was never shown; it expires within the hour.
        if (error instanceof ApiError && error.status === 409) once.current = newOnceId();
        throw error;
      });
      once.current = newOnceId();
      made.current = { id: answer.id, text: answer.key, group, endMs };
      if (isGone.current) drop(true);
      return answer.key;
    },
    [account, drop],
  );
}
