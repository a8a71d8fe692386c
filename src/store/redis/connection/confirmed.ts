/**
 * Operators' writes on a Redis with replicas: answered when one replica has them too, so that a failover cannot undo a
 * write that an operator saw succeed (docs/failure-model.md invariant 35, row B6). They use a connection of their own,
 * because WAIT blocks all later commands on the same one.
 */
import type { AccountTag } from "../../../values/key.ts";
import { type Store, UnconfirmedError } from "../../contract.ts";
import type { RedeemAnswer } from "../../records.ts";
import { accountKey, CODE_INDEX, codeKey, NAME_INDEX, signInsKey } from "../keys.ts";
import type { RedisConnection } from "./connect.ts";

/** How long a replica may take to confirm. */
const CONFIRM_MS = 200;

/** Makes sure that a replica has what was written to these keys. Call it after the write. */
export type Confirm = (keys: readonly string[], answer: unknown) => Promise<void>;

/** @param store works on `connection` and on no other. */
export function confirmedWrites(store: Store, connection: RedisConnection): Partial<Store> {
  const sure = async <T>(
    keys: readonly string[],
    write: () => Promise<T>,
    wasRefused: (answer: T) => boolean = () => false,
  ): Promise<T> => {
    const confirm = confirmOn(connection);
    const answer = await write();
    if (!wasRefused(answer)) await confirm(keys, answer);
    return answer;
  };
  // An error after a refusal would say that the change was made.
  const given = <T>(tag: AccountTag, write: () => Promise<T>) => sure([accountKey(tag)], write, isNothing);
  return {
    createAccount: (account) => sure([accountKey(account.tag), NAME_INDEX], () => store.createAccount(account)),
    setPlan: (tag, ...ask) => given(tag, () => store.setPlan(tag, ...ask)),
    setAccountLimits: (tag, ...ask) => given(tag, () => store.setAccountLimits(tag, ...ask)),
    setNotifyBelow: (tag, ...ask) => given(tag, () => store.setNotifyBelow(tag, ...ask)),
    changeAccount: (tag, ...ask) => given(tag, () => store.changeAccount(tag, ...ask)),
    renameAccount: (tag, ...ask) =>
      sure([accountKey(tag), NAME_INDEX], () => store.renameAccount(tag, ...ask), isNothing),
    closeAccount: (tag, ...ask) => given(tag, () => store.closeAccount(tag, ...ask)),
    createKey: (tag, ...ask) => given(tag, () => store.createKey(tag, ...ask)),
    changeKey: (tag, ...ask) => given(tag, () => store.changeKey(tag, ...ask)),
    rotateKey: (tag, ...ask) => given(tag, () => store.rotateKey(tag, ...ask)),
    revokeKey: (tag, ...ask) => given(tag, () => store.revokeKey(tag, ...ask)),
    credit: (tag, ...ask) =>
      sure(
        [accountKey(tag)],
        () => store.credit(tag, ...ask),
        ({ outcome }) => !COUNTED.has(outcome),
      ),
    grant: (tag, ...ask) => given(tag, () => store.grant(tag, ...ask)),
    createCodes: (...ask) =>
      sure([CODE_INDEX, ...ask[1].map(({ hash }) => codeKey(hash))], () => store.createCodes(...ask)),
    archiveLedger: (tag, ...ask) =>
      sure(
        [accountKey(tag)],
        () => store.archiveLedger(tag, ...ask),
        (outcome) => outcome !== "archived" && outcome !== "duplicate",
      ),
    keepSignIn: (owner, ...ask) =>
      sure(
        [signInsKey(owner)],
        () => store.keepSignIn(owner, ...ask),
        (outcome) => outcome !== "kept",
      ),
    takeSignIn: (owner, ...ask) => sure([signInsKey(owner)], () => store.takeSignIn(owner, ...ask), isNothing),
    // What is not there may have been removed by a call that was not confirmed.
    dropSignIn: (owner, ...ask) => sure([signInsKey(owner)], () => store.dropSignIn(owner, ...ask)),
    dropSignIns: (owner, ...ask) => sure([signInsKey(owner)], () => store.dropSignIns(owner, ...ask)),
    redeem: (ask) =>
      sure(
        [accountKey(ask.tag), codeKey(ask.hash)],
        () => store.redeem(ask),
        ({ outcome }) => !REDEEMED.has(outcome),
      ),
  };
}

/** The outcomes of a payment and of a redemption that stand for a write, now or earlier. */
const COUNTED: ReadonlySet<string> = new Set<Awaited<ReturnType<Store["credit"]>>["outcome"]>([
  "credited",
  "duplicate",
]);
const REDEEMED: ReadonlySet<string> = new Set<RedeemAnswer["outcome"]>(["redeemed", "again"]);

/** Whether a write was refused: what it is about does not exist, or has too many, or another account has the name. */
function isNothing(answer: unknown): boolean {
  return answer === undefined || answer === "too_many" || answer === "taken";
}

/**
 * Call it before a write, so that a connection that is lost in between is noticed: another server may have the write.
 * @returns a function that rejects with UnconfirmedError when replicas exist and none has confirmed in time, and when
 * the server does not say whether it has replicas.
 */
export function confirmOn(connection: RedisConnection): Confirm {
  const before = connection.losses();
  return async (keys, answer) => {
    const found = await connection.replicated(keys, CONFIRM_MS).catch(() => undefined);
    if (found === undefined || connection.losses() !== before) throw new UnconfirmedError("server", answer);
    if (!found) throw new UnconfirmedError("replicas", answer);
  };
}
