/** Holds one by one against their totals: money set aside, requests in flight. */
import { formatUsd } from "../../values/money.ts";
import type { AccountCheck, Finding } from "./snapshot.ts";

const finding = (check: string, what: string, about?: string): Finding => ({ check, line: undefined, about, what });

/** `held`: what is held of the balance. */
const held: AccountCheck = ({ figures: { account, holds } }) => {
  if (!holds) return [];
  const sum = holds.filter(({ entitlement }) => !entitlement).reduce((total, { amount }) => total + amount, 0n);
  if (sum === account.held) return [];
  return [finding("held", `The held amount is ${formatUsd(account.held)} USD; the holds sum up to ${formatUsd(sum)}.`)];
};

/** `card_held`: what is held of each card. */
const cardHeld: AccountCheck = ({ figures: { cards, holds } }) =>
  [...cards].flatMap(([id, card]) => {
    if (!card || !holds) return [];
    const sum = holds.filter(({ entitlement }) => entitlement === id).reduce((total, { amount }) => total + amount, 0n);
    if (sum === card.held) return [];
    const words = `is ${formatUsd(card.held)} USD; its holds sum up to ${formatUsd(sum)}`;
    return [finding("card_held", `The held amount of the card ${id} ${words}.`, id)];
  });

/** `in_flight`: the number of requests in flight equals the number of holds, in total and in each limit scope. */
const inFlight: AccountCheck = ({ figures: { inFlight: counted, holds, scopes } }) => {
  if (!holds) return [];
  const all = counted === holds.length ? [] : [countFinding("", counted, holds.length)];
  const byScope = [...scopes].flatMap(([scope, count]) => {
    const there = holds.filter((hold) => hold.scope === scope).length;
    return count === there ? [] : [countFinding(scope, count, there)];
  });
  return [...all, ...byScope];
};

function countFinding(scope: string, counted: number, there: number): Finding {
  const where = scope === "" ? "" : ` in ${scope}`;
  const what = `The count of requests in flight${where} is ${counted}; there are ${there} holds.`;
  return finding("in_flight", what, scope);
}

/** `hold_settled`: a settled request holds nothing any more. */
const holdSettled: AccountCheck = ({ figures: { holds = [], marks } }) =>
  holds
    .filter(({ requestId }) => marks.get(requestId) !== undefined)
    .map(({ requestId }) => {
      const what = `The request ${requestId} is settled, but its hold still exists.`;
      return finding("hold_settled", what, requestId);
    });

/**
 * `hold_expiry`: each hold is in the store's list of expiries with the expiry of its own record, and the list has no
 * others. A hold that is not in the list would never expire. A change that stopped half-way may have written only one
 * of the two.
 */
const holdExpiry: AccountCheck = ({ figures: { holds, expiries, unfinished, unreadable } }) => {
  if (!holds || unfinished) return [];
  const own = new Map(holds.map(({ requestId, expiresAtMs }) => [requestId, expiresAtMs]));
  const wrong = [...own].flatMap(([id, endMs]) => {
    const listed = expiries.get(id);
    if (listed === endMs) return [];
    const how = listed === undefined ? "never, because it is not in the list of expiries" : `at ${listed}`;
    const what = `The hold of the request ${id} should expire at ${endMs} (ms), but expires ${how}.`;
    return [finding("hold_expiry", what, id)];
  });
  const lost = [...expiries.keys()].filter((id) => !own.has(id) && !unreadable.includes(`hold ${id}`));
  return [
    ...wrong,
    ...lost.map((id) => finding("hold_expiry", `The request ${id} is in the list of expiries, but has no hold.`, id)),
  ];
};

export const holdChecks: readonly AccountCheck[] = [held, cardHeld, inFlight, holdSettled, holdExpiry];
