/**
 * The id by which a write counts once. It is created when a form is opened, and survives a reload of the page while the
 * outcome of the write is unknown.
 */
import { ApiError, newOnceId } from "./api.ts";
import { useRef } from "./view.ts";

const KEPT = "tollgate-once:";

/** Runs a write with its id. @throws what `send` throws */
export type OnceRunner = <A>(send: (id: string) => Promise<A>) => Promise<A>;

/** Refusals which show that an earlier attempt succeeded. */
const WAS_DONE: ReadonlySet<string> = new Set(["id_used", "key_exists", "codes_exist"]);

/**
 * Whether an id is finished. A refusal changed nothing, but says nothing about an earlier attempt whose answer was
 * lost. While the form stays open, the same id remains valid.
 */
function isEnd(error: unknown, wasSent: boolean): boolean {
  if (!(error instanceof ApiError) || error.status < 400 || error.status >= 500) return false;
  return !wasSent || WAS_DONE.has(error.code);
}

interface Once {
  readonly run: OnceRunner;
  /** Renews the id: later requests are another write. */
  readonly renew: () => void;
}

/** @param form identifies the form and its subject, independent of the language: `topup alice` */
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
