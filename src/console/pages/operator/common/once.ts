/**
 * The id by which a write counts once. It is made when a form is opened, and outlives a reload of the page while nobody knows
 * whether what was sent has been done.
 */
import { AskRefused, newOnceId } from "../../parts/api.ts";
import { useState } from "../../parts/view.ts";

const KEPT = "tollgate-once:";

/** Runs a write with its id. @throws what `send` throws */
export type OnceRunner = <A>(send: (id: string) => Promise<A>) => Promise<A>;

/** @param form names the form and what it is about: `topup alice`. */
export function useOnce(form: string): OnceRunner {
  const [id, setId] = useState(() => sessionStorage.getItem(KEPT + form) ?? newOnceId());
  return async (send) => {
    sessionStorage.setItem(KEPT + form, id);
    try {
      const answer = await send(id);
      sessionStorage.removeItem(KEPT + form);
      setId(newOnceId());
      return answer;
    } catch (error) {
      // A refusal is known to have changed nothing; the same id stays good for the form as it is open.
      if (error instanceof AskRefused && error.status >= 400 && error.status < 500)
        sessionStorage.removeItem(KEPT + form);
      throw error;
    }
  };
}
