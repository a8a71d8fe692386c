/** Time cards: the account's record of each against its lines, and the owner of its code. */
import { formatUsd } from "../../values/money.ts";
import { accountId, entitlementAccount } from "../names.ts";
import type { AccountCheck, AccountSnapshot, Finding } from "./snapshot.ts";

/** Cards of the portion, with the record and the sums of the lines. */
function each({ figures, lines }: AccountSnapshot) {
  return [...figures.cards].map(([id, kept]) => ({ id, kept, given: lines.cards.get(entitlementAccount(id)) }));
}

const finding = (check: string, about: string, what: string): Finding => ({ check, line: undefined, about, what });

/** `card_missing`, `card_without_line`: every card that the ledger gave exists, and no other does. */
const cardPresence: AccountCheck = (snapshot) =>
  each(snapshot).flatMap(({ id, kept, given }) => {
    if (kept && !given) return [finding("card_without_line", id, `The card ${id} exists, but no line gave it.`)];
    if (given && !kept) return [finding("card_missing", id, `The card ${id} was given, but does not exist.`)];
    if (!kept) return [finding("card_missing", id, `There are sums for the card ${id}, but it does not exist.`)];
    return [];
  });

/** `card_spent`: what a card has paid. */
const cardSpent: AccountCheck = (snapshot) =>
  each(snapshot).flatMap(({ id, kept, given }) => {
    if (!kept || kept.spent === (given?.spent ?? 0n)) return [];
    const words = `${formatUsd(kept.spent)} USD; the lines sum up to ${formatUsd(given?.spent ?? 0n)}`;
    return [finding("card_spent", id, `The sum spent on the card ${id} is ${words}.`)];
  });

/** `card_quota`: the worth of a card was fixed when it was given. */
const cardQuota: AccountCheck = (snapshot) =>
  each(snapshot).flatMap(({ id, kept, given }) => {
    if (!kept || !given || (kept.quota ?? 0n) === given.quota) return [];
    const words = `${formatUsd(kept.quota ?? 0n)} USD; its line says ${formatUsd(given.quota)}`;
    return [finding("card_quota", id, `The card ${id} is worth ${words}.`)];
  });

/** `card_overdrawn`: spent and held together do not exceed what a card is worth. */
const cardOverdrawn: AccountCheck = (snapshot) =>
  each(snapshot).flatMap(({ id, kept }) => {
    if (!kept || (kept.held >= 0n && kept.spent + kept.held <= (kept.quota ?? 0n))) return [];
    const words = `worth ${formatUsd(kept.quota ?? 0n)} USD: ${formatUsd(kept.spent)} spent, ${formatUsd(kept.held)} held`;
    return [finding("card_overdrawn", id, `The card ${id} is overdrawn, ${words}.`)];
  });

/** `card_unlisted`: admission looks at every card that has not ended. */
const cardListed: AccountCheck = (snapshot) =>
  each(snapshot).flatMap(({ id, kept }) => {
    if (!kept || kept.listed || kept.untilMs <= snapshot.figures.storeTimeMs) return [];
    return [finding("card_unlisted", id, `The card ${id} has not ended, but admission does not look at it.`)];
  });

/**
 * `code_owner`: a code belongs to one account. If its own record names another account, or none, a failover has lost a
 * redemption, and the code can be or was redeemed twice (docs/failure-model.md row B6).
 */
const codeOwner: AccountCheck = ({ figures, codes }) =>
  [...codes].flatMap(([id, code]) => {
    if (!code || code.tag === figures.account.tag) return [];
    const whose = code.tag === undefined ? "nobody" : accountId(code.tag as typeof figures.account.tag);
    const words = `its own record says that ${whose} has it (${code.state})`;
    return [finding("code_owner", id, `The code ${id} has paid here, but ${words}.`)];
  });

export const cardChecks: readonly AccountCheck[] = [
  cardPresence,
  cardSpent,
  cardQuota,
  cardOverdrawn,
  cardListed,
  codeOwner,
];
