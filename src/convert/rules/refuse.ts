/**
 * How a translator says no. A refusal is a value for everybody outside this folder; inside, forty levels of nested
 * blocks would each have to hand it up, so it travels as an exception from `refuse` to the one `refusing` around it.
 */
import { type Cause, type Refusal, refusal } from "../../values/errors.ts";

class Refused extends Error {
  readonly refusal: Refusal;
  constructor(value: Refusal) {
    super("refused");
    this.refusal = value;
  }
}

/**
 * Ends the translation.
 * @param param the member at fault in the client's own spelling.
 * @param detail one sentence about this request, with its full stop.
 */
export function refuse(
  cause: Extract<Cause, "untranslatable" | "unsupported_parameter" | "wrong_type" | "missing_field">,
  param: string,
  detail: string,
): never {
  throw new Refused(refusal(cause, { param, detail }));
}

/** Runs a translation; gives its result, or the refusal that ended it. Other exceptions pass: they are our own faults. */
export function refusing<T>(work: () => T): T | Refusal {
  try {
    return work();
  } catch (error) {
    if (error instanceof Refused) return error.refusal;
    throw error;
  }
}
