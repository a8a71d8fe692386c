/** When a key expires: typed in the reader's time zone, sent in UTC. */
import { ApiError } from "../../parts/api.ts";
import { html, type VNode } from "../../parts/view.ts";
import { Field } from "../../parts/widgets.ts";
import { T } from "../../texts/texts.ts";

const W = T.owner.keys;

interface ExpiryFieldProps {
  /** In the form of the input: `2027-01-31T12:00`. */
  readonly typed: string;
  readonly onType: (typed: string) => void;
}

export function ExpiryField({ typed, onType }: ExpiryFieldProps): VNode {
  return html`<${Field} label=${W.expires} hint=${W.expiresHint}>${({
    id,
    describedBy,
  }: {
    id: string;
    describedBy: string;
  }) => html`<input
    id=${id}
    type="datetime-local"
    aria-describedby=${describedBy}
    value=${typed}
    onInput=${(event: Event) => {
      const input = event.target as HTMLInputElement;
      onType(input.validity.badInput ? HALF_TYPED : input.value);
    }}
  />`}</${Field}>`;
}

const HALF_TYPED = "?";

/** @returns undefined for an empty input @throws ApiError for an incomplete date, or one that is over */
export function instantOf(typed: string): string | undefined {
  if (typed === "") return undefined;
  const at = new Date(typed);
  if (Number.isNaN(at.getTime())) throw new ApiError(0, "bad_instant", W.badInstant, "");
  if (at.getTime() <= Date.now()) throw new ApiError(0, "past_instant", W.pastInstant, "");
  return at.toISOString();
}

export function typedInstant(iso: string | null): string {
  if (iso === null) return "";
  const at = new Date(iso);
  const local = new Date(at.getTime() - at.getTimezoneOffset() * 60_000);
  return local.toISOString().slice(0, 16);
}
