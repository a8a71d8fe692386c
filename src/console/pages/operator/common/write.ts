/** Writes: a button that opens a form in a dialog, sends it once, and shows the result. */

import { ApiError } from "../../parts/api.ts";
import { useAction } from "../../parts/load.ts";
import { type OnceRunner, useOnce } from "../../parts/once.ts";
import { type ComponentChildren, html, useLayoutEffect, useState, type VNode } from "../../parts/view.ts";
import { Button, Dialog, Field, Form } from "../../parts/widgets.ts";
import { T } from "../../texts/texts.ts";

export interface WriteField {
  readonly name: string;
  readonly label: string;
  readonly hint?: string;
  /** The initial value. */
  readonly value?: string;
  /** The choices, with their labels. */
  readonly options?: readonly (readonly [value: string, words: string])[];
  readonly type?: "text" | "number" | "date" | "datetime-local";
}

export type Typed = Readonly<Record<string, string>>;

interface WriteProps {
  /** The label of the button, and the title of the form. */
  readonly label: string;
  /** The account or key that is changed: part of the id by which the write counts once. */
  readonly about: string;
  /** An explanation above the fields. */
  readonly words?: string | undefined;
  readonly fields?: readonly WriteField[];
  readonly kind?: "main" | "quiet" | "danger";
  /** Sends the form. Its result replaces the fields: a secret that is shown once. */
  readonly send: (typed: Typed, once: OnceRunner) => Promise<ComponentChildren | undefined>;
  /** For a write that counts once: its name, independent of the language. */
  readonly deedName?: string;
  /** Called after the write succeeded. */
  readonly onDone?: (() => void) | undefined;
}

/** A button that opens the form. */
export function Write(props: WriteProps): VNode {
  const [isOpen, setOpen] = useState(false);
  return html`<${Button} kind=${props.kind === "danger" ? "danger" : (props.kind ?? "quiet")} onClick=${() => setOpen(true)}>${props.label}</${Button}>
    ${isOpen && html`<${WriteForm} ...${props} onClose=${() => setOpen(false)} />`}`;
}

function WriteForm(props: WriteProps & { readonly onClose: () => void }): VNode {
  const { label, about, words, fields = [], kind = "main", send, onDone, onClose } = props;
  const [typed, setTyped] = useState<Typed>(() =>
    Object.fromEntries(fields.map(({ name, value = "", options }) => [name, value || (options?.[0]?.[0] ?? "")])),
  );
  const [shown, setShown] = useState<ComponentChildren | undefined>(undefined);
  const once = useOnce(`${props.deedName ?? label} ${about}`);
  const action = useAction(async () => {
    const result = await send(typed, once.run).catch((error: unknown) => {
      throw byField(error, fields);
    });
    onDone?.();
    if (result === undefined) onClose();
    else setShown(result);
  });
  // Not on a button: a second Enter would close the dialog, and what it shows may be shown only once.
  useLayoutEffect(() => {
    if (shown !== undefined) document.querySelector<HTMLElement>("dialog[open]")?.focus();
  }, [shown]);
  if (shown !== undefined) {
    return html`<${Dialog} title=${label} onClose=${onClose}>${shown}
      <${Button} kind="main" onClick=${onClose}>${T.common.close}</${Button}></${Dialog}>`;
  }
  return html`<${Dialog} title=${label} onClose=${onClose}>
    ${words && html`<p>${words}</p>`}
    <${Form} action=${action} onSubmit=${() => action.run()}>
      ${fields.map((field) => html`<${Input} key=${field.name} field=${field} value=${typed[field.name] ?? ""} onValue=${(value: string) => setTyped((old: Typed) => ({ ...old, [field.name]: value }))} />`)}
      <div class="row">
        <${Button} kind=${kind === "danger" ? "danger" : "main"} isRunning=${action.isRunning}>${label}</${Button}>
        <${Button} onClick=${onClose}>${T.common.cancel}</${Button}>
      </div>
    </${Form}>
  </${Dialog}>`;
}

/** The member that a refusal begins with: `usd`, `budgets_usd.day`, `addresses[0]`. */
const MEMBER = /^`(?:\w+\.)*(\w+)(?:\[\d+\])?`/;

/** A refusal that names a field by its label, as the form does, in place of the API's member. */
export function byField(error: unknown, fields: readonly WriteField[]): unknown {
  if (!(error instanceof ApiError) || error.code !== "malformed") return error;
  const [member = "", name = ""] = MEMBER.exec(error.message) ?? [];
  const isIts = (field: WriteField) => field.name === name || name.startsWith(`${field.name}_`);
  const field = fields.length === 1 ? fields[0] : fields.find(isIts);
  if (member === "" || field === undefined) return error;
  const message = `“${field.label}”${error.message.slice(member.length)}`;
  return new ApiError(error.status, error.code, message, error.remedy);
}

interface InputProps {
  readonly field: WriteField;
  readonly value: string;
  /** What is wrong with the input. */
  readonly wrong?: string | undefined;
  readonly onValue: (value: string) => void;
}

/** One field of a form, of any kind. */
export function Input({ field, value, wrong, onValue }: InputProps): VNode {
  const typed = (event: Event) => onValue((event.target as HTMLInputElement).value);
  const { label, hint, options, type = "text" } = field;
  return html`<${Field} label=${label} hint=${hint} wrong=${wrong}>${({
    id,
    describedBy,
  }: {
    id: string;
    describedBy: string;
  }) =>
    options
      ? html`<select id=${id} aria-describedby=${describedBy} value=${value} onChange=${typed}>
          ${options.map(([choice, words]) => html`<option value=${choice}>${words}</option>`)}
        </select>`
      : html`<input id=${id} aria-describedby=${describedBy} type=${type} autocomplete="off" value=${value} onInput=${typed} />`}</${Field}>`;
}

/** Choices whose labels are their names. */
export const choices = (names: readonly string[]) => names.map((name) => [name, name] as const);
