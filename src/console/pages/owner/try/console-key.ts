/**
 * The key with which this page asks: one for an hour, made when it is first needed and revoked when the page is left. It is in
 * the page's memory and nowhere else.
 */
import type { KeyAnswer } from "../../../answers/answers.ts";
import { AskRefused, ask, newOnceId } from "../../parts/api.ts";
import { useCallback, useEffect, useRef } from "../../parts/view.ts";

const LASTS_MS = 3_600_000;
/** So long before its end a key is not used any more. */
const SPARE_MS = 60_000;
const NAME = "console";

interface Made {
  readonly id: string;
  readonly text: string;
  readonly group: string;
  readonly endMs: number;
}

/** @returns gives the text of a key in a group; throws AskRefused. */
export function useConsoleKey(account: string): (group: string) => Promise<string> {
  const made = useRef<Made | undefined>(undefined);
  const isGone = useRef(false);
  // The same until an answer has come: a creation that is sent again makes no second key.
  const once = useRef(newOnceId());
  const drop = useCallback((keepalive: boolean) => {
    const old = made.current;
    made.current = undefined;
    // A key that could not be revoked ends by itself within the hour.
    if (old) void ask(`/keys/${old.id}/revoke`, { method: "POST", keepalive }).catch(() => {});
  }, []);
  useEffect(() => {
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
        // What it made the first time nobody has seen; it ends within the hour.
        if (error instanceof AskRefused && error.status === 409) once.current = newOnceId();
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
