/** The building blocks of all pages. Each works with the keyboard and has labels for screen readers. */
import { T } from "../texts/texts.ts";
import type { ApiError } from "./api.ts";
import { lackingDigits } from "./format.ts";
import type { Action, AnswerState } from "./load.ts";
import { type ComponentChildren, html, useLayoutEffect, useRef, useState, type VNode } from "./view.ts";

/** What went wrong and what to do, in the gateway's words. */
export function Problem({ refused, retry }: { refused: ApiError | undefined; retry?: () => void }): VNode | null {
  if (!refused) return null;
  const isSilent = refused.code === "unreachable";
  const [own, ownRemedy] = T.common.refusals[refused.code] ?? [];
  const message = isSilent ? T.common.unreachable : (own ?? (refused.message || T.common.failed));
  // If a language has no complete translation of a refusal, the gateway's words are shown.
  const said = own ? (ownRemedy ?? `${refused.message} ${refused.remedy}`) : refused.remedy;
  const remedy = isSilent ? T.common.unreachableRemedy : said;
  return html`<div class="problem" role="alert">
    <p><strong>${withNames(message)}</strong></p>
    ${remedy && html`<p>${withNames(remedy)}</p>`}
    ${retry && html`<button type="button" class="quiet" onClick=${retry}>${T.common.tryAgain}</button>`}
  </div>`;
}

/** Renders names of members and commands, which the gateway's texts mark with backticks. */
const withNames = (words: string) =>
  words.split(/`([^`]+)`/).map((part, index) => (index % 2 === 1 ? html`<code>${part}</code>` : part));

/** Shows what was loaded; before that, a loading state or the error. */
export function Awaited<A>({
  loaded,
  children,
}: {
  loaded: AnswerState<A>;
  children: (data: A) => ComponentChildren;
}): VNode {
  const { data, refused, reload, isLoading } = loaded;
  return html`<div aria-busy=${isLoading}>
    <${Problem} refused=${refused} retry=${reload} />
    ${data !== undefined ? children(data) : !refused && html`<p class="faint">${T.common.loading}</p>`}
  </div>`;
}

interface ButtonProps {
  /** What happens when it is pressed; if omitted, it submits its form. */
  readonly onClick?: (() => void) | undefined;
  readonly isRunning?: boolean;
  readonly kind?: "main" | "quiet" | "danger";
  readonly disabled?: boolean;
  readonly label?: string;
  readonly children?: ComponentChildren;
}

export function Button({
  onClick,
  isRunning = false,
  kind = "quiet",
  disabled = false,
  label,
  children,
}: ButtonProps): VNode {
  return html`<button
    type=${onClick ? "button" : "submit"}
    class=${kind}
    aria-label=${label}
    aria-busy=${isRunning}
    disabled=${disabled || isRunning}
    onClick=${onClick}
  >${isRunning ? T.common.working : children}</button>`;
}

/** Copies a text to the clipboard and confirms it. */
export function CopyButton({ text, label }: { text: string; label?: string }): VNode {
  const [isCopied, setCopied] = useState(false);
  const copy = async () => {
    await navigator.clipboard.writeText(text);
    setCopied(true);
  };
  return html`<button type="button" class="quiet copy" aria-label=${label} onClick=${copy}>
    <span aria-live="polite">${isCopied ? T.common.copied : T.common.copy}</span>
  </button>`;
}

/** A complete text to copy. */
export function Code({ text, label }: { text: string; label: string }): VNode {
  return html`<figure class="code">
    <figcaption>${label}<${CopyButton} text=${text} /></figcaption>
    <pre tabindex="0" aria-label=${label}><code>${text}</code></pre>
  </figure>`;
}

interface FieldProps {
  readonly label: string;
  /** What is to be typed, and in which form. */
  readonly hint?: string | undefined;
  /** What is wrong with the input. */
  readonly wrong?: string | undefined;
  readonly children: (ids: { id: string; describedBy: string | undefined }) => ComponentChildren;
}

let fields = 0;

/** One input with its label, hint and error. */
export function Field({ label, hint, wrong, children }: FieldProps): VNode {
  const [id] = useState(() => `field-${++fields}`);
  const describedBy = hint || wrong ? `${id}-hint` : undefined;
  return html`<div class="field">
    <label for=${id}>${label}</label>
    ${children({ id, describedBy })}
    ${describedBy && html`<p id=${describedBy} class=${wrong ? "wrong" : "hint"}>${wrong || hint}</p>`}
  </div>`;
}

interface DialogProps {
  readonly title: string;
  readonly onClose: () => void;
  readonly children?: ComponentChildren;
}

/**
 * A modal dialog; Escape closes it. The focus is on its first field, and returns to where it was, however the dialog
 * ends.
 */
export function Dialog({ title, onClose, children }: DialogProps): VNode {
  const place = useRef<HTMLDialogElement>(null);
  const isGone = useRef(false);
  // Before the page is painted: what is typed next goes into the dialog, not to the button that opened it.
  useLayoutEffect(() => {
    const dialog = place.current;
    const opener = document.activeElement as HTMLElement | null;
    dialog?.showModal();
    dialog?.querySelector<HTMLElement>("input, select, textarea")?.focus();
    return () => {
      isGone.current = true;
      dialog?.close();
      // The browser gives the focus back only while the dialog is in the page.
      opener?.focus();
    };
  }, []);
  return html`<dialog ref=${place} tabindex="-1" aria-label=${title} onClose=${() => isGone.current || onClose()}>
    <header><h2>${title}</h2><button type="button" class="quiet" onClick=${() => place.current?.close()} aria-label=${T.common.close}>✕</button></header>
    ${children}
  </dialog>`;
}

interface FormProps<A extends unknown[]> {
  readonly action: Action<A>;
  readonly onSubmit: () => void;
  readonly children?: ComponentChildren;
}

/** Fields that are sent together. A refusal is shown below them, and the input stays. */
export function Form<A extends unknown[]>({ action, onSubmit, children }: FormProps<A>): VNode {
  const submitted = (event: Event) => {
    event.preventDefault();
    onSubmit();
  };
  return html`<form onSubmit=${submitted} novalidate>
    ${children}
    <${Problem} refused=${action.refused} />
  </form>`;
}

export interface TableColumn<R> {
  readonly title: string;
  readonly cell: (row: R) => ComponentChildren;
  /** Numbers are right-aligned; amounts have their points below each other. */
  readonly isNumber?: boolean;
  /** A remark below the content. */
  readonly below?: (row: R) => ComponentChildren;
}

interface TableProps<R> {
  /** What the table contains, for screen readers. */
  readonly caption: string;
  readonly columns: readonly TableColumn<R>[];
  readonly rows: readonly R[];
  readonly keyOf: (row: R) => string;
  /** Shown in place of the table if there are no rows. */
  readonly empty: string;
}

/** Narrow screens show each row as a list of its cells, with the columns' titles. */
export function Table<R>({ caption, columns, rows, keyOf, empty }: TableProps<R>): VNode {
  if (rows.length === 0) return html`<p class="empty">${empty}</p>`;
  const classOf = (column: TableColumn<R>) => (column.isNumber ? "number" : undefined);
  const cells = columns.map((column) => cellsOf(column, rows));
  return html`<div class="scroll" tabindex="0" role="region" aria-label=${caption}><table>
    <caption>${caption}</caption>
    <thead><tr>${columns.map((column) => html`<th scope="col" class=${classOf(column)}>${column.title}</th>`)}</tr></thead>
    <tbody>${rows.map(
      (row, at) =>
        html`<tr key=${keyOf(row)}>${columns.map(
          (column, place) => html`<td data-title=${column.title} class=${classOf(column)}>${cells[place]?.[at]}</td>`,
        )}</tr>`,
    )}</tbody>
  </table></div>`;
}

function cellsOf<R>({ cell, below, isNumber }: TableColumn<R>, rows: readonly R[]): readonly ComponentChildren[] {
  const contents = rows.map(cell);
  const lacking = isNumber ? lackingDigits(contents.map((one) => (typeof one === "string" ? one : ""))) : [];
  return rows.map((row, at) => {
    const content = withPlaces(contents[at], lacking[at] ?? 0);
    const remark = below?.(row);
    return remark ? html`<span>${content}<small>${remark}</small></span>` : content;
  });
}

/** An amount with room for the digits that it lacks. The room is neither read aloud nor copied. */
function withPlaces(content: ComponentChildren, lacking: number): ComponentChildren {
  return lacking === 0 ? content : html`${content}<span class="places" data-digits=${"0".repeat(lacking)}></span>`;
}

/** How an attempt ended, or why, in words; the ledger's own word is in the tooltip. */
export function AttemptWord({ of }: { of: string }): VNode {
  return html`<span title=${of}>${attemptWord(of)}</span>`;
}

export const attemptWord = (of: string): string => T.common.attempts[of] ?? of;

/** A state as one word. */
export function Badge({
  kind,
  children,
}: {
  kind: "good" | "warn" | "bad" | "plain";
  children?: ComponentChildren;
}): VNode {
  return html`<span class=${`badge ${kind}`}>${children}</span>`;
}

/** One figure with its title. */
export function Figure({
  title,
  children,
  hint,
}: {
  title: string;
  children?: ComponentChildren;
  hint?: string;
}): VNode {
  return html`<div class="figure"><dt>${title}</dt><dd>${children}${hint && html`<small>${hint}</small>`}</dd></div>`;
}
