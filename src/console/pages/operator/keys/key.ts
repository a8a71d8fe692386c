/** The page of one key: its facts and all actions on it. */
import type { ListedKeyAnswer } from "../../../answers/answers.ts";
import { ask } from "../../parts/api.ts";
import { fromNow, instant } from "../../parts/format.ts";
import { useAnswer } from "../../parts/load.ts";
import { hrefOf } from "../../parts/router.ts";
import { html, type VNode } from "../../parts/view.ts";
import { Awaited, Figure } from "../../parts/widgets.ts";
import { T } from "../../texts/texts.ts";
import { Budgets } from "../accounts/budgets.ts";
import { State } from "../common/words.ts";
import { choices, type Typed, Write } from "../common/write.ts";
import type { OperatorPageProps } from "../session.ts";
import { shownOnce } from "./keys.ts";
import { LimitSet, limitFields, limitsBody } from "./limits.ts";

const W = T.operator.keys;

interface KeyPageProps {
  readonly session: OperatorPageProps["session"];
  readonly account: string;
  readonly id: string;
}

export function KeyPage({ session, account, id }: KeyPageProps): VNode {
  const key = useAnswer<ListedKeyAnswer>(`/keys/${encodeURIComponent(id)}`);
  return html`<p><a href=${hrefOf(["accounts", account])}>← ${account}</a></p>
    <${Awaited} loaded=${key}>${(data: ListedKeyAnswer) => html`
      <div class="row"><h1 dir="auto">${data.name ?? data.id}</h1><${State} of=${data.status} /></div>
      <p class="faint"><code>${data.id}</code> · ${W.created(instant(data.created_at))} · <a href=${hrefOf(["explain"], { key: data.id })}>${T.operator.explain.title}</a></p>
      <dl class="figures">
        <${Figure} title=${T.operator.group}>${data.group}</${Figure}>
        <${Figure} title=${W.lastUsed} hint=${data.last_used === null ? "" : [data.last_used.by, data.last_used.from].filter(Boolean).join(" · ")}>${data.last_used === null ? T.common.never : fromNow(data.last_used.at)}</${Figure}>
        <${Figure} title=${W.expires}>${data.expires_at === null ? T.common.never : instant(data.expires_at)}</${Figure}>
        ${data.previous_until !== null && html`<${Figure} title=${W.previous}>${instant(data.previous_until)}</${Figure}>`}
      </dl>
      ${data.status !== "revoked" && html`<${KeyActions} data=${data} session=${session} onDone=${key.reload} />`}
      <${Budgets} uses=${data.budgets} />
      <div class="panels">
        <${LimitSet} title=${W.limits} words=${W.limitsWords} limits=${data.limits} />
        <${LimitSet} title=${W.caps} words=${W.capsWords} limits=${data.caps} />
      </div>`}</${Awaited}>`;
}

interface KeyActionsProps {
  readonly data: ListedKeyAnswer;
  readonly session: OperatorPageProps["session"];
  readonly onDone: () => void;
}

function KeyActions({ data, session, onDone }: KeyActionsProps): VNode {
  const base = `/keys/${data.id}`;
  const about = data.id;
  const write = (method: "POST" | "PUT", path: string, bodyOf: (typed: Typed) => object | undefined) => {
    return async (typed: Typed) => {
      await ask(`${base}/${path}`, { method, body: bodyOf(typed) });
      return undefined;
    };
  };
  const rotate = async ({ hours = "24" }: Typed) => {
    const body = { overlap_seconds: Math.round(Number(hours) * 3_600) };
    return shownOnce((await ask<{ readonly key: string }>(`${base}/rotate`, { method: "POST", body })).key);
  };
  const shared = { about, onDone };
  return html`<div class="row actions">
    <${Write} ...${shared} label=${W.setGroup} words=${W.setGroupWords} send=${write("PUT", "group", ({ group }) => ({ group }))}
      fields=${[{ name: "group", label: T.operator.group, value: data.group, options: choices([...new Set([...session.groups, data.group])]) }]} />
    <${Write} ...${shared} label=${W.rename} send=${write("PUT", "name", ({ name }) => ({ name: name || null }))}
      fields=${[{ name: "name", label: W.keyName, hint: W.keyNameHint, value: data.name ?? "" }]} />
    <${Write} ...${shared} label=${W.setEnd} words=${W.setEndWords} send=${write("PUT", "expiry", ({ at = "" }) => ({ expires_at: at === "" ? null : `${at.slice(0, 16)}:00Z` }))}
      fields=${[{ name: "at", label: W.endUtc, type: "datetime-local", value: data.expires_at?.slice(0, 16) ?? "" }]} />
    <${Write} ...${shared} label=${W.setLimits} words=${W.limitsWords} send=${write("PUT", "limits", limitsBody)} fields=${limitFields(data.limits)} />
    <${Write} ...${shared} label=${W.setCaps} words=${W.capsWords} send=${write("PUT", "caps", limitsBody)} fields=${limitFields(data.caps)} />
    <${Write} ...${shared} label=${W.rotate} words=${W.rotateWords} send=${rotate}
      fields=${[{ name: "hours", label: W.overlap, value: "24", type: "number" }]} />
    ${
      data.status === "suspended"
        ? html`<${Write} ...${shared} label=${W.resume} words=${W.resumeWords} send=${write("POST", "resume", () => undefined)} />`
        : html`<${Write} ...${shared} label=${W.suspend} words=${W.suspendWords} send=${write("POST", "suspend", () => undefined)} />`
    }
    <${Write} ...${shared} kind="danger" label=${W.revoke} words=${W.revokeWords} send=${write("POST", "revoke", () => undefined)} />
  </div>`;
}
