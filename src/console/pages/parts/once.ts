/**
 * The id by which a write counts once. It is made when a form is opened, and outlives a reload of the page while nobody knows
 * whether what was sent has been done.
 */
import { AskRefused, newOnceId } from "./api.ts";
import { useRef } from "./view.ts";

const KEPT = "tollgate-once:";

/** Runs a write with its id. @throws what `send` throws */
export type OnceRunner = <A>(send: (id: string) => Promise<A>) => Promise<A>;

/** Refusals that say what became of the one before: it was done. */
const WAS_DONE: ReadonlySet<string> = new Set(["id_used", "key_exists", "codes_exist"]);

/**
 * Whether an id is done with. A refusal is known to have changed nothing, but it says nothing of an earlier try whose answer was
 * lost. The same id stays good for the form as it is open.
 */
function isEnd(error: unknown, wasSent: boolean): boolean {
  if (!(error instanceof AskRefused) || error.status < 400 || error.status >= 500) return false;
  return !wasSent || WAS_DONE.has(error.code);
}

interface Once {
  readonly run: OnceRunner;
  /** What is sent from now on is another write. */
  readonly renew: () => void;
}

/** @param form names the form and what it is about, in every language alike: `topup alice`. */
export function useOnce(form: string): Once {
  const id = useRef("");
  id.current ||= sessionStorage.getItem(KEPT + form) ?? newOnceId();
  const renew = () => {
    sessionStorage.removeItem(KEPT + form);
    id.current = newOnceId();
  };
  const run: OnceRunner = async (send) => {
    const wasSent = sessionStorage.getItem(KEPT + form) === id.current;
    sessionStorage.setItem(KEPT + form, id.current);
    try {
      const answer = await send(id.current);
      renew();
      return answer;
    } catch (error) {
      if (isEnd(error, wasSent)) sessionStorage.removeItem(KEPT + form);
      throw error;
    }
  };
  return { run, renew };
}
