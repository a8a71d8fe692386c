/** The actions on an account, each with its own form. */
import type { AccountAnswer, MovementAnswer } from "../../../answers/answers.ts";
import { ApiError, ask } from "../../parts/api.ts";
import { instant, usd } from "../../parts/format.ts";
import type { OnceRunner } from "../../parts/once.ts";
import { go, hrefOf } from "../../parts/router.ts";
import { html, type VNode } from "../../parts/view.ts";
import { Code } from "../../parts/widgets.ts";
import { T } from "../../texts/texts.ts";
import { choices, type Typed, Write } from "../common/write.ts";
import type { OperatorPageProps } from "../session.ts";

const W = T.operator.accounts;
const A = T.operator.accountActions;

interface ActionsProps {
  readonly account: AccountAnswer;
  readonly session: OperatorPageProps["session"];
  readonly onDone: () => void;
}

export function AccountActions({ account, session, onDone }: ActionsProps): VNode {
  const base = `/accounts/${encodeURIComponent(account.name)}`;
  const about = account.name;
  return html`<div class="row actions">
    <${Funds} ...${{ account, session, onDone }} base=${base} />
    ${account.status !== "closed" && html`<${Terms} ...${{ account, session, onDone }} base=${base} />`}
    <${Write} label=${A.invite} about=${about} words=${A.inviteWords} send=${() => invite(base)} />
    ${
      account.status === "suspended"
        ? html`<${Write} label=${A.resume} about=${about} words=${A.resumeWords} onDone=${onDone} send=${post(`${base}/resume`)} />`
        : account.status === "normal" &&
          html`<${Write} label=${A.suspend} about=${about} words=${A.suspendWords} onDone=${onDone} send=${post(`${base}/suspend`)} />`
    }
    ${
      account.status !== "closed" &&
      html`<${Write} kind="danger" label=${A.close} about=${about} words=${A.closeWords(account.name)} onDone=${onDone}
      fields=${[{ name: "name", label: A.typeName }]} send=${close(base, account.name)} />`
    }
  </div>`;
}

type PartProps = ActionsProps & { readonly base: string };

/**
 * Actions that move money. Each counts once, by the id of its form. From a closed account, money can only be paid out.
 */
function Funds({ account, session, onDone, base }: PartProps): VNode {
  const move = (path: string) => async (typed: Typed, once: OnceRunner) => {
    const done = await once((id) => ask<MovementAnswer>(`${base}/${path}`, { method: "POST", body: { ...typed, id } }));
    const words = done.repeated ? A.movedBefore : A.moved;
    return html`<p role="status">${words(usd(done.usd), usd(done.balance_usd))}</p>`;
  };
  const give = async ({ card = "" }: Typed, once: OnceRunner) => {
    await once((id) => ask(`${base}/gifts`, { method: "POST", body: { card, id } }));
    return undefined;
  };
  const about = account.name;
  const amount = { name: "usd", label: A.amount, hint: A.amountHint };
  const isOpen = account.status !== "closed";
  return html`${isOpen && html`<${Write} kind="main" deedName="topup" label=${A.topUp} about=${about} fields=${[amount]} send=${move("topups")} onDone=${onDone} />`}
    <${Write} deedName="adjust" label=${A.adjust} about=${about} words=${A.adjustWords} send=${move("adjustments")} onDone=${onDone}
      fields=${[{ ...amount, hint: A.adjustHint }, { name: "note", label: A.note, hint: A.noteHint }]} />
    ${
      isOpen &&
      session.cards.length > 0 &&
      html`<${Write} deedName="gift" label=${A.gift} about=${about} words=${A.giftWords} send=${give} onDone=${onDone}
      fields=${[{ name: "card", label: W.card, options: choices(session.cards) }]} />`
    }`;
}

/** The name, plan, labels and limits of an account. */
function Terms({ account, session, onDone, base }: PartProps): VNode {
  const about = account.name;
  const put = (path: string, bodyOf: (typed: Typed) => object) => async (typed: Typed) => {
    await ask(`${base}/${path}`, { method: "PUT", body: bodyOf(typed) });
    return undefined;
  };
  const rename = async ({ name = "" }: Typed) => {
    await ask(`${base}/name`, { method: "PUT", body: { name } });
    go(hrefOf(["accounts", name]), true);
    return undefined;
  };
  const { day, month } = account.limits.budgets_usd;
  return html`<${Write} label=${A.plan} about=${about} onDone=${onDone} send=${put("plan", ({ plan }) => ({ plan }))}
      fields=${[{ name: "plan", label: T.operator.plan, value: account.plan, options: choices([...new Set([...session.plans, account.plan])]) }]} />
    <${Write} label=${A.labels} about=${about} words=${A.labelsWords} onDone=${onDone}
      send=${put("labels", ({ name = "", value = "" }) => ({ labels: { [name]: value === "" ? null : value } }))}
      fields=${[
        { name: "name", label: A.labelName, hint: A.labelNameHint },
        { name: "value", label: A.labelValue, hint: A.labelValueHint },
      ]} />
    <${Write} label=${A.budgets} about=${about} words=${A.budgetsWords} onDone=${onDone}
      send=${put("limits", (typed) => ({ budgets_usd: { day: typed.day || null, month: typed.month || null } }))}
      fields=${[
        { name: "day", label: A.budgetDay, hint: A.emptyNone, value: day ?? "" },
        { name: "month", label: A.budgetMonth, hint: A.emptyNone, value: month ?? "" },
      ]} />
    <${Write} label=${A.notify} about=${about} onDone=${onDone}
      send=${put("notify", (typed) => ({ below_usd: typed.below || null }))}
      fields=${[{ name: "below", label: A.below, hint: A.belowHint, value: account.notify_below_usd ?? "" }]} />
    <${Write} label=${A.rename} about=${about} words=${A.renameWords} send=${rename}
      fields=${[{ name: "name", label: W.name, hint: W.nameHint, value: account.name }]} />`;
}

/** Creates a sign-in link, which is shown once. */
async function invite(base: string): Promise<VNode> {
  const made = await ask<{ readonly link: string; readonly ends_at: string }>(`${base}/invitations`, {
    method: "POST",
  });
  return html`<p class="note warn" role="status">${A.inviteOnce(instant(made.ends_at))}</p><${Code} label=${A.link} text=${made.link} />`;
}

const post = (path: string) => async () => {
  await ask(path, { method: "POST" });
  return undefined;
};

/** Permanent actions require that the operator types the account's name. */
function close(base: string, name: string) {
  return async (typed: Typed) => {
    if (typed.name !== name) throw new ApiError(400, "not_the_name", A.notTheName, A.typeName);
    await ask(`${base}/close`, { method: "POST" });
    return undefined;
  };
}
