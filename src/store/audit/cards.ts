/** Time cards: what the account has of each against what its lines say, and whose its code is. */
import { formatUsd } from "../../values/money.ts";
import { accountId, entitlementAccount } from "../names.ts";
import type { AccountCheck, AccountSnapshot, Finding } from "./snapshot.ts";

/** Cards of the portion with what both sides have of them. */
function each({ figures, lines }: AccountSnapshot) {
  return [...figures.cards].map(([id, kept]) => ({ id, kept, told: lines.cards.get(entitlementAccount(id)) }));
}

const finding = (check: string, about: string, what: string): Finding => ({ check, line: undefined, about, what });

/** `card_missing`, `card_without_line`: a card that the ledger gave is there, and nothing of any other. */
const cardPresence: AccountCheck = (snapshot) =>
  each(snapshot).flatMap(({ id, kept, told }) => {
    if (kept && !told) return [finding("card_without_line", id, `The card ${id} is there, and no line gave it.`)];
    if (told && !kept) return [finding("card_missing", id, `The card ${id} was given, and is not there.`)];
    if (!kept) return [finding("card_missing", id, `Sums are kept of the card ${id}, and it is not there.`)];
    return [];
  });

/** `card_spent`: what a card has paid. */
const cardSpent: AccountCheck = (snapshot) =>
  each(snapshot).flatMap(({ id, kept, told }) => {
    if (!kept || kept.spent === (told?.spent ?? 0n)) return [];
    const words = `${formatUsd(kept.spent)} USD; the lines sum up to ${formatUsd(told?.spent ?? 0n)}`;
    return [finding("card_spent", id, `The sum spent on the card ${id} is ${words}.`)];
  });

/** `card_quota`: what a card is worth was fixed when it was given. */
const cardQuota: AccountCheck = (snapshot) =>
  each(snapshot).flatMap(({ id, kept, told }) => {
    if (!kept || !told || (kept.quota ?? 0n) === told.quota) return [];
    const words = `${formatUsd(kept.quota ?? 0n)} USD; its line says ${formatUsd(told.quota)}`;
    return [finding("card_quota", id, `The card ${id} is worth ${words}.`)];
  });

/** `card_overdrawn`: paid and set aside, a card gives no more than it is worth. */
const cardOverdrawn: AccountCheck = (snapshot) =>
  each(snapshot).flatMap(({ id, kept }) => {
    if (!kept || (kept.held >= 0n && kept.spent + kept.held <= (kept.quota ?? 0n))) return [];
    const words = `${formatUsd(kept.quota ?? 0n)} USD, ${formatUsd(kept.spent)} are spent and ${formatUsd(kept.held)} held`;
    return [finding("card_overdrawn", id, `Of the card ${id}, worth ${words}.`)];
  });

/** `card_unlisted`: a card that has not ended is one that admission looks at. */
const cardListed: AccountCheck = (snapshot) =>
  each(snapshot).flatMap(({ id, kept }) => {
    if (!kept || kept.listed || kept.untilMs <= snapshot.figures.storeTimeMs) return [];
    return [finding("card_unlisted", id, `The card ${id} has not ended, and admission does not look at it.`)];
  });

/**
 * `code_owner`: a code is one account's. Where its own record names another, or none, a failover has forgotten a redemption
 * and the code can be, or was, redeemed twice (docs/failure-model.md row B6).
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
