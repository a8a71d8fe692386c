/** What was spent: sums with a chart, down to single requests. */

import { day } from "../../parts/format.ts";
import { go, hrefOf } from "../../parts/router.ts";
import { html, useState, type VNode } from "../../parts/view.ts";
import { Button, Field } from "../../parts/widgets.ts";
import { T } from "../../texts/texts.ts";
import type { FieldIds } from "../field-ids.ts";
import { useKeyNames } from "../key-names.ts";
import type { PageProps } from "../session.ts";
import { Lines } from "./lines.ts";
import { RequestDetails } from "./request.ts";
import { SPANS, spanOf, type UsageSpan } from "./spans.ts";
import { Sums } from "./sums.ts";

const VIEWS = ["day", "model", "key", "group", "requests"] as const;
type View = (typeof VIEWS)[number];

export function Usage({ session, place }: PageProps): VNode {
  const keyNames = useKeyNames(session.account);
  const [, request] = place.path;
  if (request !== undefined) return html`<${RequestDetails} key=${request} id=${request} keyNames=${keyNames} />`;
  const span = spanOf(place);
  const view = VIEWS.find((one) => one === place.query.get("by")) ?? "day";
  const words = T.owner.usage;
  const titles = {
    day: words.byDay,
    model: words.byModel,
    key: words.byKey,
    group: words.byGroup,
    requests: words.requestsView,
  };
  const asked = span.days === undefined ? { since: span.since, until: span.until } : { days: String(span.days) };
  const viewHref = (by: View) => hrefOf(["usage"], { ...asked, by });
  return html`<h1>${words.title}</h1>
    <${SpanChoice} span=${span} days=${span.days} view=${view} />
    <nav aria-label=${words.by}><ul class="choice">${VIEWS.map(
      (one) =>
        html`<li><a href=${viewHref(one)} aria-current=${one === view ? "page" : undefined}>${titles[one]}</a></li>`,
    )}</ul></nav>
    ${
      view === "requests"
        ? html`<${Lines} key=${`${span.since}${span.until}`} span=${span} keyNames=${keyNames} query=${place.query} />`
        : html`<${Sums} key=${`${span.since}${span.until}`} span=${span} by=${view} keyNames=${keyNames} />`
    }`;
}

interface SpanChoiceProps {
  readonly span: UsageSpan;
  readonly days: number | undefined;
  readonly view: View;
}

function SpanChoice({ span, days, view }: SpanChoiceProps): VNode {
  const words = T.owner.usage;
  const [isOpen, setOpen] = useState(days === undefined);
  const current = (is: boolean) => (is ? "page" : undefined);
  const opened = (event: Event) => {
    event.preventDefault();
    setOpen(true);
  };
  return html`<nav aria-label=${words.span}><ul class="choice">
      ${SPANS.map(
        (one) =>
          html`<li><a href=${hrefOf(["usage"], { days: String(one), by: view })} aria-current=${current(one === days)}
            onClick=${() => setOpen(false)}>${one === 1 ? words.today : words.days(one)}</a></li>`,
      )}
      <li><a href=${hrefOf(["usage"], { ...span, by: view })} aria-current=${current(days === undefined)} onClick=${opened}>${words.fromTo}</a></li>
    </ul></nav>
    ${isOpen && html`<${FromTo} key=${`${span.since} ${span.until}`} span=${span} view=${view} />`}
    <p class="faint">${words.dates(day(span.since), day(span.until))} ${view === "requests" ? words.utcLines : words.utc}</p>`;
}

function FromTo({ span, view }: { readonly span: UsageSpan; readonly view: View }): VNode {
  const words = T.owner.usage;
  const [since, setSince] = useState(span.since);
  const [until, setUntil] = useState(span.until);
  const isBad = since === "" || until === "" || since > until;
  const submitted = (event: Event) => {
    event.preventDefault();
    if (!isBad) go(hrefOf(["usage"], { since, until, by: view }));
  };
  const typed = (set: (text: string) => void) => (event: Event) => set((event.target as HTMLInputElement).value);
  return html`<form class="side-by-side" onSubmit=${submitted} novalidate>
    <${Field} label=${words.from} wrong=${isBad ? T.common.badSpan : undefined}>${({ id, describedBy }: FieldIds) => html`<input type="date" id=${id} aria-describedby=${describedBy} value=${since} onInput=${typed(setSince)} />`}</${Field}>
    <${Field} label=${words.to}>${({ id }: FieldIds) => html`<input type="date" id=${id} value=${until} onInput=${typed(setUntil)} />`}</${Field}>
    <${Button} disabled=${isBad}>${words.show}</${Button}>
  </form>`;
}
