/**
 * The `Idempotency-Key` header: 1 to 255 printable ASCII characters, once
 * (docs/decisions/idempotency-keeps-no-bodies.md).
 */
import { type Refusal, refusal } from "../values/errors.ts";
import type { RequestHeaders } from "./headers.ts";

const NAME = "idempotency-key";
const FORM = /^[\x20-\x7e]{1,255}$/;

/** The key as the client wrote it; undefined when there is none; a refusal when it cannot be used. */
export function idempotencyKeyOf(headers: RequestHeaders): string | Refusal | undefined {
  const values = headers.all(NAME);
  if (values.length === 0) return undefined;
  const [key = ""] = values;
  if (values.length > 1) return malformed("It was sent more than once.");
  return FORM.test(key) ? key : malformed("It is not 1 to 255 printable ASCII characters.");
}

function malformed(detail: string): Refusal {
  return refusal("idempotency_key", { param: "Idempotency-Key", detail });
}
