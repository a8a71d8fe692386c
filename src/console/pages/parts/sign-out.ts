/** Signing out. A request that is refused meanwhile is not reported as a session that has ended. */
import { ApiError, ask, whenSignedOut } from "./api.ts";
import { type Action, useAction } from "./load.ts";
import { useEffect, useRef } from "./view.ts";

/**
 * @param path of the sign-out
 * @param onOut called when there is no session any more. `none`: the person has signed out; `ended`: it has ended otherwise
 */
export function useSignOut(path: string, onOut: (now: "none" | "ended") => void): Action<[]> {
  // The session ends at the gateway before the sign-out is answered, and other requests may be answered in between.
  const isLeaving = useRef(false);
  const out = useAction(async () => {
    isLeaving.current = true;
    try {
      await ask(path, { method: "POST" });
    } catch (error) {
      // The session had ended already.
      if (!(error instanceof ApiError && error.code === "signed_out")) throw error;
    } finally {
      isLeaving.current = false;
    }
    onOut("none");
  });
  useEffect(() => {
    whenSignedOut(() => {
      // The next session is not told that an earlier sign-out was refused.
      out.forget();
      onOut(isLeaving.current ? "none" : "ended");
    });
  }, []);
  return out;
}
