/** Holds one by one against what is counted of them: money set aside, requests in flight. */
import { formatUsd } from "../../values/money.ts";
import type { AccountCheck, Finding } from "./snapshot.ts";

const finding = (check: string, what: string, about?: string): Finding => ({ check, line: undefined, about, what });

/** `held`: what is held of the balance. */
const held: AccountCheck = ({ figures: { account, holds } }) => {
  if (!holds) return [];
  const sum = holds.filter(({ entitlement }) => !entitlement).reduce((total, { amount }) => total + amount, 0n);
  if (sum === account.held) return [];
  return [finding("held", `${formatUsd(account.held)} USD are held; the holds sum up to ${formatUsd(sum)}.`)];
};

/** `card_held`: what is held of each card. */
const cardHeld: AccountCheck = ({ figures: { cards, holds } }) =>
  [...cards].flatMap(([id, card]) => {
    if (!card || !holds) return [];
    const sum = holds.filter(({ entitlement }) => entitlement === id).reduce((total, { amount }) => total + amount, 0n);
    if (sum === card.held) return [];
    const words = `${formatUsd(card.held)} USD are held; its holds sum up to ${formatUsd(sum)}`;
    return [finding("card_held", `Of the card ${id} ${words}.`, id)];
  });

/** `in_flight`: as many requests are in flight as there are holds, in all and in each scope of limits. */
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
  const what = `${counted} requests are counted as in flight${where}; there are ${there} holds.`;
  return finding("in_flight", what, scope);
}

/** `hold_settled`: a request that is settled holds nothing any more. */
const holdSettled: AccountCheck = ({ figures: { holds = [], marks } }) =>
  holds
    .filter(({ requestId }) => marks.get(requestId) !== undefined)
    .map(({ requestId }) => {
      const what = `The request ${requestId} is settled, and its hold is still there.`;
      return finding("hold_settled", what, requestId);
    });

/**
 * `hold_expiry`: each hold ends in the store's list of ends exactly when its own record says so, and the list has no
 * others; a hold that is not in the list would never end. A change that has stopped half-way may have written one of
 * the two.
 */
const holdExpiry: AccountCheck = ({ figures: { holds, expiries, unfinished, unreadable } }) => {
  if (!holds || unfinished) return [];
  const own = new Map(holds.map(({ requestId, expiresAtMs }) => [requestId, expiresAtMs]));
  const wrong = [...own].flatMap(([id, endMs]) => {
    const listed = expiries.get(id);
    if (listed === endMs) return [];
    const how = listed === undefined ? "never, since it is not on the list of ends" : `at ${listed}`;
    const what = `The hold of the request ${id} is to end at ${endMs} (ms), and ends ${how}.`;
    return [finding("hold_expiry", what, id)];
  });
  const lost = [...expiries.keys()].filter((id) => !own.has(id) && !unreadable.includes(`hold ${id}`));
  return [
    ...wrong,
    ...lost.map((id) => finding("hold_expiry", `The request ${id} is on the list of ends, and has no hold.`, id)),
  ];
};

export const holdChecks: readonly AccountCheck[] = [held, cardHeld, inFlight, holdSettled, holdExpiry];
