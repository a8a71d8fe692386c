/**
 * Replays journaled administrative writes in the order in which the store took them. A replay changes nothing if the
 * store still has the write, and never moves a record back:
 * - Payments, accounts, keys, codes and cards count once, by their ids.
 * - Values that are set (a group, a plan, a name, labels) count only above their current revision.
 * - A revocation is final, and so is the closing of an account.
 * - A sign-in record is removed only if it was created by the time that the replayed removal names.
 */

import { type Store, StoreError } from "../../store/contract.ts";
import type { AccountChange, KeyChange } from "../../store/records.ts";
import type { SignInKind, SignInOwner } from "../../store/sign-ins.ts";
import type { CodeHash } from "../../values/code.ts";
import type { AccountTag, KeyHash } from "../../values/key.ts";
import { type NanoUsd, parseNano } from "../../values/money.ts";
import type { AdminRecord } from "../journal.ts";

type ReplayStore = Pick<
  Store,
  | "createAccount"
  | "getAccount"
  | "setPlan"
  | "setAccountLimits"
  | "setNotifyBelow"
  | "changeAccount"
  | "renameAccount"
  | "closeAccount"
  | "createKey"
  | "changeKey"
  | "rotateKey"
  | "revokeKey"
  | "credit"
  | "grant"
  | "createCodes"
  | "voidCode"
  | "redeem"
  | "dropSignIn"
>;

/** Why the store cannot take a replayed write. */
interface NotTaken {
  readonly problem: string;
  /** Whether the problem may be temporary: what the write is about is missing or broken, and may come back. */
  readonly mayPass: boolean;
}

/**
 * Replays one write.
 * @returns why the store cannot take it; undefined if the store has it now.
 * Rejects with StoreError while the store is unavailable.
 */
export async function replay(record: AdminRecord, store: ReplayStore): Promise<NotTaken | undefined> {
  const facts = new Facts(record.payload);
  try {
    return await WRITES[record.kind]?.(facts, store);
  } catch (error) {
    if (error instanceof UnreadableError || error instanceof RangeError || error instanceof TypeError) {
      return refused(error.message);
    }
    if (error instanceof StoreError && error.outcome === "refused") return { problem: error.message, mayPass: true };
    throw error;
  }
}

type Write = (facts: Facts, store: ReplayStore) => Promise<NotTaken | undefined>;

const refused = (problem: string): NotTaken => ({ problem, mayPass: false });
const absent = (problem: string): NotTaken => ({ problem, mayPass: true });
const NO_ACCOUNT = absent("its account is not there");
/** May be temporary: that account may have been renamed since, and the journal of another gateway has the renaming. */
const OTHER_HAS_NAME = absent("another account has its name");

const WRITES: Readonly<Record<AdminRecord["kind"], Write>> = {
  async account_create(facts, store) {
    const tag = facts.tag();
    await store.createAccount({ tag, name: facts.text("name"), plan: facts.text("plan") });
    const account = await store.setPlan(tag, facts.text("plan"), facts.count("revision"));
    return account === undefined ? OTHER_HAS_NAME : undefined;
  },
  async account_plan(facts, store) {
    const account = await store.setPlan(facts.tag(), facts.text("plan"), facts.count("revision"));
    return account === undefined ? NO_ACCOUNT : undefined;
  },
  async account_limits(facts, store) {
    const account = await store.setAccountLimits(facts.tag(), facts.text("limits"), facts.count("revision"));
    return account === undefined ? NO_ACCOUNT : undefined;
  },
  async account_notify(facts, store) {
    const account = await store.setNotifyBelow(facts.tag(), facts.amountOrNone("below"), facts.count("revision"));
    return account === undefined ? NO_ACCOUNT : undefined;
  },
  async account_change(facts, store) {
    const [tag, status, revision] = [facts.tag(), facts.text("status"), facts.count("revision")];
    const change: AccountChange = {
      ...(facts.isAbout("labels") && { labels: facts.texts("labels") }),
      ...(facts.isAbout("status") &&
        status !== "closed" && { status: status === "suspended" ? status : ("normal" as const) }),
    };
    const changed = await store.changeAccount(tag, change, revision);
    if (changed === "too_many") return refused("it has too many labels");
    const account = status === "closed" ? await store.closeAccount(tag, revision) : changed;
    return account === undefined ? NO_ACCOUNT : undefined;
  },
  /** An account whose creation is lost, or is in the journal of another gateway, is created under its new name. */
  async account_rename(facts, store) {
    const [tag, name, revision] = [facts.tag(), facts.text("name"), facts.count("revision")];
    await store.createAccount({ tag, name, plan: facts.text("plan") });
    await store.setPlan(tag, facts.text("plan"), facts.count("planRevision"));
    const account = await store.renameAccount(tag, name, revision);
    return typeof account === "object" ? undefined : OTHER_HAS_NAME;
  },
  async key_create(facts, store) {
    const [id, hash, group] = [facts.text("id"), facts.text("hash") as KeyHash, facts.text("group")];
    const [name, expiresAtMs] = [facts.textOrNone("name"), facts.countOrNone("expiresAtMs")];
    const key = await store.createKey(facts.tag(), { id, hash, group, name, expiresAtMs });
    if (key !== undefined) return undefined;
    return (await store.getAccount(facts.tag())) ? refused("its account is closed") : NO_ACCOUNT;
  },
  key_change: changeKey,
  async key_rotate(facts, store) {
    const rotation = { hash: facts.text("hash") as KeyHash, untilMs: facts.count("untilMs") };
    const key = await store.rotateKey(facts.tag(), facts.text("id"), rotation, facts.count("revision"));
    if (key === "too_many") return refused("too many values of the key are valid");
    return key === undefined ? absent("the key is not there") : undefined;
  },
  key_revoke: changeKey,
  async credit(facts, store) {
    const kind = facts.text("kind") === "adjust" ? "adjust" : "topup";
    const payment = {
      id: facts.text("id"),
      amount: facts.signedAmount("amount"),
      kind,
      note: facts.text("note"),
      again: true,
    } as const;
    const { outcome } = await store.credit(facts.tag(), payment);
    if (outcome === "unknown_account") return NO_ACCOUNT;
    // The payment that added the funds may be in another gateway's journal.
    if (outcome === "refused" && payment.amount < 0n) return absent("the funds that it takes are missing");
    return outcome === "credited" || outcome === "duplicate" ? undefined : refused(`the store answers ${outcome}`);
  },
  async grant(facts, store) {
    return facts.has("hash") ? redeemAgain(facts, store) : grantAgain(facts, store);
  },
  async code(facts, store) {
    if (facts.has("void")) {
      const code = await store.voidCode(facts.text("void"));
      if (code === undefined) return absent("the code is not there");
      return code.state === "void" ? undefined : refused(`the code is ${code.state}`);
    }
    const codes = facts.list("codes").map((code) => ({ id: code.text("id"), hash: code.text("hash") as CodeHash }));
    const outcome = await store.createCodes(facts.card(), codes, facts.batch());
    return outcome === "taken" ? refused("another code has its id") : undefined;
  },
  async sign_in_drop(facts, store) {
    const [owner, kind] = [facts.text("owner") as SignInOwner, facts.text("kind") as SignInKind];
    await store.dropSignIn(owner, kind, facts.text("id"), facts.count("keptByMs"));
    return undefined;
  },
};

/**
 * The record has the state of the key after the change; for a key that was revoked by then, the replay is a revocation.
 */
async function changeKey(facts: Facts, store: ReplayStore): Promise<NotTaken | undefined> {
  const tag = facts.tag();
  const [id, status, revision] = [facts.text("id"), facts.text("status"), facts.count("revision")];
  const change: KeyChange = {
    ...(facts.isAbout("group") && { group: facts.text("group") }),
    ...(facts.isAbout("name") && { name: facts.text("name") }),
    ...(facts.isAbout("status") && { status: status === "suspended" ? status : ("normal" as const) }),
    ...(facts.isAbout("expiresAtMs") && { expiresAtMs: facts.countOrNone("expiresAtMs") ?? "never" }),
    // Records of versions without limits have no such members.
    ...(facts.isAbout("limits") && facts.has("limits") && { limits: facts.text("limits") }),
    ...(facts.isAbout("caps") && facts.has("caps") && { caps: facts.text("caps") }),
  };
  const revoked = status === "revoked";
  const key = await (revoked ? store.revokeKey(tag, id, revision) : store.changeKey(tag, id, change, revision));
  return key === undefined ? absent("the key is not there") : undefined;
}

/** Recreates the code first, in case it was lost too. Then redeems it; another account may have been faster. */
async function redeemAgain(facts: Facts, store: ReplayStore): Promise<NotTaken | undefined> {
  const [tag, hash] = [facts.tag(), facts.text("hash") as CodeHash];
  await store.createCodes(facts.card(), [{ id: facts.text("id"), hash }]);
  const { outcome } = await store.redeem({ hash, tag, fromMs: facts.count("fromMs") });
  if (outcome === "unknown_account") return NO_ACCOUNT;
  return outcome === "redeemed" || outcome === "again" ? undefined : refused(`the store answers ${outcome}`);
}

async function grantAgain(facts: Facts, store: ReplayStore): Promise<NotTaken | undefined> {
  const granted = await store.grant(facts.tag(), {
    id: facts.text("id"),
    card: facts.text("card"),
    gift: facts.has("gift") ? true : undefined,
    plan: facts.text("plan"),
    group: facts.text("group"),
    lastsMs: facts.count("lastsMs"),
    afterPrevious: false,
    fromMs: facts.count("fromMs"),
    quota: facts.amountOrNone("quota"),
    reference: facts.text("reference"),
  });
  return granted === undefined ? NO_ACCOUNT : undefined;
}

class UnreadableError extends Error {
  override readonly name = "UnreadableError";
}

/** A record's payload as it comes from JSON: amounts are decimal strings, undefined members are absent. */
class Facts {
  readonly #json: Readonly<Record<string, unknown>>;

  constructor(json: Readonly<Record<string, unknown>>) {
    this.#json = json;
  }

  has(name: string): boolean {
    return this.#json[name] !== undefined;
  }

  /** Whether the write changed this member. A record without `changed` changed all of its members. */
  isAbout(name: string): boolean {
    const { changed } = this.#json;
    return !Array.isArray(changed) || changed.includes(name);
  }

  text(name: string): string {
    const value = this.#json[name];
    return typeof value === "string" ? value : unreadable(name);
  }

  textOrNone(name: string): string | undefined {
    return this.has(name) ? this.text(name) : undefined;
  }

  texts(name: string): Readonly<Record<string, string>> {
    const value = this.#json[name];
    const isTexts =
      typeof value === "object" && value !== null && Object.values(value).every((one) => typeof one === "string");
    return isTexts ? (value as Readonly<Record<string, string>>) : unreadable(name);
  }

  tag(): AccountTag {
    return this.text("tag") as AccountTag;
  }

  count(name: string): number {
    const value = this.#json[name];
    return typeof value === "number" && Number.isSafeInteger(value) ? value : unreadable(name);
  }

  countOrNone(name: string): number | undefined {
    return this.has(name) ? this.count(name) : undefined;
  }

  signedAmount(name: string): bigint {
    const text = this.text(name);
    const size = parseNano(text.replace(/^-/, "")) ?? unreadable(name);
    return text.startsWith("-") ? -size : size;
  }

  amountOrNone(name: string): NanoUsd | undefined {
    return this.has(name) ? (parseNano(this.text(name)) ?? unreadable(name)) : undefined;
  }

  list(name: string): Facts[] {
    const value = this.#json[name];
    return Array.isArray(value) ? value.map((item) => new Facts(objectOf(item, name))) : unreadable(name);
  }

  /** What a code is worth. */
  card(): Parameters<Store["createCodes"]>[0] {
    const facts = new Facts(objectOf(this.#json.facts, "facts"));
    return {
      card: facts.text("card"),
      plan: facts.text("plan"),
      group: facts.text("group"),
      lastsMs: facts.count("lastsMs"),
      starts: facts.text("starts") === "after_previous" ? "after_previous" : "at_redemption",
      quota: facts.amountOrNone("quota"),
      expiresAtMs: facts.countOrNone("expiresAtMs"),
      batch: facts.textOrNone("batch"),
    };
  }

  /** The label and size of the codes' batch; undefined for codes without one, and in the record of a redemption. */
  batch(): Parameters<Store["createCodes"]>[2] {
    if (!this.has("batch")) return undefined;
    const batch = new Facts(objectOf(this.#json.batch, "batch"));
    return { label: batch.text("label"), count: batch.count("count") };
  }
}

function objectOf(value: unknown, name: string): Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : unreadable(name);
}

function unreadable(name: string): never {
  throw new UnreadableError(`its record has no readable ${name}`);
}
