/**
 * Redeems a typed code for an account. Failures are counted, and answers reveal nothing about codes of other accounts.
 */
import type { Account, RedeemAnswer } from "../../../store/records.ts";
import { type CodeHash, readCode } from "../../../values/code.ts";
import { COMMAND } from "../../../values/program/program.ts";
import type { RedemptionAnswer } from "../../answers/answers.ts";
import { showEntitlement } from "../../answers/present.ts";
import { AdminRefusal, accountClosed, malformed, noSuchAccount } from "../../refusal.ts";
import type { ConsoleAnswer, ConsoleParts } from "../contract.ts";

/** Redeems codes for all accounts. */
export class Redeemer {
  readonly #parts: ConsoleParts;

  constructor(parts: ConsoleParts) {
    this.#parts = parts;
  }

  /** @throws AdminRefusal that is the same for an unknown code and for another account's */
  async redeem(account: Account, typed: string): Promise<ConsoleAnswer<RedemptionAnswer>> {
    const hash = readTyped(typed);
    return this.#parts.codeGuesses.inTurn(account.id, () => this.#redeem(account, hash));
  }

  async #redeem(account: Account, hash: CodeHash): Promise<ConsoleAnswer<RedemptionAnswer>> {
    const { codeGuesses } = this.#parts;
    const waitMs = codeGuesses.waitMs(account.id);
    if (waitMs > 0) {
      this.#parts.onCodeFailure?.({ account: account.id, outcome: "blocked", blocksNow: false });
      throw tooManyGuesses(waitMs);
    }
    const answer = await this.#parts.store.redeem({ hash, tag: account.tag });
    if (answer.outcome === "unknown_account") throw noSuchAccount(account.name);
    if (answer.outcome === "closed_account") throw accountClosed(account.name);
    if (answer.outcome === "redeemed" || answer.outcome === "again") return redeemed(account, answer);
    const blocksNow = codeGuesses.failed(account.id);
    this.#parts.onCodeFailure?.({ account: account.id, outcome: "failed", blocksNow });
    throw answer.outcome === "expired" ? noLongerRedeemable() : notRedeemable();
  }
}

function redeemed(
  account: Account,
  { outcome, code, entitlement }: Extract<RedeemAnswer, { outcome: "redeemed" | "again" }>,
): ConsoleAnswer<RedemptionAnswer> {
  const repeated = outcome === "again";
  const body = {
    account: account.name,
    code_id: code.id,
    card: code.card,
    entitlement: showEntitlement(entitlement),
    repeated,
  };
  return { status: repeated ? 200 : 201, body, repeated, audit: { code_id: code.id, card: code.card } };
}

/** @throws AdminRefusal 400 for text that cannot be a code; it is not looked up and does not count as a failure */
function readTyped(typed: string): CodeHash {
  const hash = readCode(typed);
  if (hash === undefined) {
    throw malformed(
      "code",
      "a code: 17 letters and digits in groups, XXXX-XXXX-XXXX-XXXX-X",
      "Send the code as it was sold.",
    );
  }
  if (hash !== "typo") return hash;
  throw new AdminRefusal(
    400,
    "code_mistyped",
    "The code has a typing error: its last character does not match the others.",
    "Compare it with the code that was sold, character by character.",
  );
}

/** One answer for codes that do not exist, are void or belong to another account, so that a guess reveals nothing. */
function notRedeemable(): AdminRefusal {
  return new AdminRefusal(
    404,
    "code_not_redeemable",
    "This account cannot redeem this code: it does not exist, it is void, or another account has redeemed it.",
    `Compare it with the code that was sold. To see the state of every code, by id: ${COMMAND} code list`,
  );
}

/** For real codes that can no longer be redeemed. It can reveal this, because such a code has no value. */
function noLongerRedeemable(): AdminRefusal {
  return new AdminRefusal(
    410,
    "expired_code",
    "The last day on which this code could be redeemed is over; nothing was changed.",
    `Ask the seller for another code; operators can give the card: ${COMMAND} card gift ACCOUNT CARD --id ID`,
  );
}

function tooManyGuesses(waitMs: number): AdminRefusal {
  const seconds = Math.ceil(waitMs / 1_000);
  return new AdminRefusal(
    429,
    "too_many_wrong_codes",
    "This account has tried too many codes that it cannot redeem; for now, its codes are not looked up.",
    `Wait ${seconds} s, then send the right code.`,
    { "retry-after": String(seconds) },
  );
}
