/** The owner's passkeys and running sessions. */
import type { AccessAnswer } from "../../../answers/session.ts";
import { ask } from "../../parts/api.ts";
import { fromNow, instant } from "../../parts/format.ts";
import { useAction, useAnswer } from "../../parts/load.ts";
import { html, useState, type VNode } from "../../parts/view.ts";
import { Awaited, Badge, Button, Dialog, Field, Form, Problem, Table, type TableColumn } from "../../parts/widgets.ts";
import { T } from "../../texts/texts.ts";
import type { PageProps } from "../session.ts";
import { addPasskey, mayHavePasskeys } from "./browser-passkeys.ts";

type Passkey = AccessAnswer["passkeys"][number];
type Running = AccessAnswer["sessions"][number];

export function Access(_props: PageProps): VNode {
  const access = useAnswer<AccessAnswer>("/access");
  return html`<h1>${T.owner.access.title}</h1>
    <${Awaited} loaded=${access}>${(data: AccessAnswer) => html`
      <${Passkeys} passkeys=${data.passkeys} onChange=${access.reload} />
      <${Sessions} sessions=${data.sessions} onChange=${access.reload} />
    `}</${Awaited}>`;
}

interface PasskeysProps {
  readonly passkeys: readonly Passkey[];
  readonly onChange: () => void;
}

/** The passkey that is being added, renamed or removed. */
type PasskeyStep = { readonly kind: "add" } | { readonly kind: "rename" | "remove"; readonly passkey: Passkey };

function Passkeys({ passkeys, onChange }: PasskeysProps): VNode {
  const words = T.owner.access;
  const [open, setOpen] = useState<PasskeyStep | undefined>(undefined);
  const done = () => {
    setOpen(undefined);
    onChange();
  };
  const columns: readonly TableColumn<Passkey>[] = [
    {
      title: words.name,
      cell: ({ name, synced }) =>
        html`<span><bdi>${name}</bdi> ${synced && html`<${Badge} kind="plain">${words.synced}</${Badge}>`}</span>`,
    },
    { title: words.added, cell: ({ added_at: at }) => instant(at) },
    { title: words.used, cell: ({ used_at: at }) => (at ? fromNow(at) : T.common.never) },
    {
      title: words.change,
      cell: (passkey) => html`<div class="row">
        <${Button} label=${words.renameOne(passkey.name)} onClick=${() => setOpen({ kind: "rename", passkey })}>${words.rename}</${Button}>
        <${Button} kind="danger" label=${words.removeOne(passkey.name)} onClick=${() => setOpen({ kind: "remove", passkey })}>${words.remove}</${Button}>
      </div>`,
    },
  ];
  return html`<section class="panel">
    <div class="row apart"><h2>${words.passkeys}</h2>
      ${mayHavePasskeys() && html`<${Button} kind="main" onClick=${() => setOpen({ kind: "add" })}>${words.add}</${Button}>`}
    </div>
    <p class="faint">${words.passkeysHint}</p>
    <${Table} caption=${words.passkeys} columns=${columns} rows=${passkeys} keyOf=${({ id }: Passkey) => id} empty=${words.noPasskeys} />
    ${open?.kind === "remove" && html`<${Removal} passkey=${open.passkey} onDone=${done} onClose=${() => setOpen(undefined)} />`}
    ${open && open.kind !== "remove" && html`<${Naming} passkey=${open.kind === "rename" ? open.passkey : undefined} onDone=${done} onClose=${() => setOpen(undefined)} />`}
  </section>`;
}

interface StepProps {
  readonly onDone: () => void;
  readonly onClose: () => void;
}

/** Names a passkey; a new one is created by the browser first. */
function Naming({ passkey, onDone, onClose }: StepProps & { readonly passkey: Passkey | undefined }): VNode {
  const words = T.owner.access;
  const [name, setName] = useState(passkey?.name ?? words.suggestedName);
  const action = useAction(async () => {
    if (passkey) await ask(`/passkeys/${passkey.id}/name`, { method: "PUT", body: { name } });
    else await addPasskey(name);
    onDone();
  });
  return html`<${Dialog} title=${passkey ? words.renameOne(passkey.name) : words.add} onClose=${onClose}>
    <${Form} action=${action} onSubmit=${() => action.run()}>
      <${Field} label=${words.name} hint=${passkey ? undefined : words.nameHint}>${({
        id,
        describedBy,
      }: {
        id: string;
        describedBy: string | undefined;
      }) => html`
        <input id=${id} aria-describedby=${describedBy} maxlength="64" required value=${name} onInput=${(event: Event) => setName((event.target as HTMLInputElement).value)} />`}
      </${Field}>
      <div class="row">
        <${Button} kind="main" isRunning=${action.isRunning}>${passkey ? words.rename : words.goOn}</${Button}>
        <${Button} onClick=${onClose}>${T.common.cancel}</${Button}>
      </div>
    </${Form}>
  </${Dialog}>`;
}

function Removal({ passkey, onDone, onClose }: StepProps & { readonly passkey: Passkey }): VNode {
  const words = T.owner.access;
  const action = useAction(async () => {
    await ask(`/passkeys/${passkey.id}/remove`, { method: "POST" });
    onDone();
  });
  return html`<${Dialog} title=${words.removeOne(passkey.name)} onClose=${onClose}>
    <${Form} action=${action} onSubmit=${() => action.run()}>
      <p>${words.removeWarning}</p>
      <div class="row">
        <${Button} kind="danger" isRunning=${action.isRunning}>${words.remove}</${Button}>
        <${Button} onClick=${onClose}>${T.common.cancel}</${Button}>
      </div>
    </${Form}>
  </${Dialog}>`;
}

interface SessionsProps {
  readonly sessions: readonly Running[];
  readonly onChange: () => void;
}

function Sessions({ sessions, onChange }: SessionsProps): VNode {
  const words = T.owner.access;
  const end = useAction(async (path: string) => {
    await ask(path, { method: "POST" });
    onChange();
  });
  const columns: readonly TableColumn<Running>[] = [
    {
      title: words.browser,
      cell: ({ agent, is_this: isThis }) =>
        html`<span><bdi class="agent" title=${agent}>${browserIn(agent) || T.common.none}</bdi> ${isThis && html`<${Badge} kind="good">${words.thisOne}</${Badge}>`}</span>`,
    },
    { title: words.method, cell: ({ way }) => words.methods[way] },
    { title: words.from, cell: ({ from }) => html`<bdi>${from || T.common.none}</bdi>` },
    { title: words.begun, cell: ({ begun_at: at }) => instant(at) },
    { title: words.ends, cell: ({ ends_at: at }) => fromNow(at) },
    {
      title: words.change,
      cell: ({ id, begun_at: at }) =>
        html`<${Button} isRunning=${end.isRunning} label=${words.endOne(instant(at))} onClick=${() => end.run(`/sessions/${id}/end`)}>${words.end}</${Button}>`,
    },
  ];
  return html`<section class="panel">
    <div class="row apart"><h2>${words.sessions}</h2>
      ${sessions.length > 1 && html`<${Button} kind="danger" isRunning=${end.isRunning} onClick=${() => end.run("/sessions/end-others")}>${words.endOthers}</${Button}>`}
    </div>
    <${Problem} refused=${end.refused} />
    <${Table} caption=${words.sessions} columns=${columns} rows=${sessions} keyOf=${({ id }: Running) => id} empty=${T.common.none} />
  </section>`;
}

/** The user agent in short, such as `Firefox 140, Linux`; complete if the browser is not a known one. */
function browserIn(agent: string): string {
  const [word, name] = BROWSERS.find(([one]) => agent.includes(`${one}/`)) ?? [];
  const [, version] = new RegExp(`${word}/(\\d+)`).exec(agent) ?? [];
  const [system] = /Windows|Android|iPhone|iPad|Mac OS X|Linux/.exec(agent) ?? [];
  return name && version ? [`${name} ${version}`, system].filter(Boolean).join(", ") : agent;
}

/**
 * By the word that identifies each browser; in this order, because the first ones also contain the words of later ones.
 */
const BROWSERS = [
  ["Edg", "Edge"],
  ["OPR", "Opera"],
  ["Firefox", "Firefox"],
  ["Chrome", "Chrome"],
  ["Version", "Safari"],
] as const;
