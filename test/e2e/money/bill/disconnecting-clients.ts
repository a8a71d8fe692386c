/** Clients that disconnect before their upstream has answered, for the tests of who is charged for them. */
import type { LedgerLine } from "../../../../src/store/records.ts";
import { formatUsd, nanoUsd } from "../../../../src/values/money.ts";
import type { Protocol } from "../../../../src/values/protocol.ts";
import type { GatewayHere, TestAccount } from "../../../rig/gateway.ts";
import { ask, assertAtRest, bodyOf, type Fields, usageLines } from "../../protocol/whole/asking.ts";
import { limited } from "./rig.ts";

/** A body whose input is estimated at this many tokens: three bytes per token. */
export function bodyOfTokens(client: Protocol, tokens: number, fields: Fields = {}): Fields {
  const said = (content: string) =>
    client === "responses" ? { input: content } : { messages: [{ role: "user", content }] };
  const bytes = JSON.stringify(bodyOf(client, { ...limited(client, client, 400), ...said(""), ...fields })).length;
  return { ...limited(client, client, 400), ...said("a".repeat(3 * tokens - bytes)), ...fields };
}

/**
 * Call this before the requests are sent. @returns a function whose promise resolves when this many more requests have
 * ended at the gateway.
 */
export function endsFromNow(here: GatewayHere): (many: number) => Promise<void> {
  const count = () => here.log.filter(({ msg }) => msg === "request").length;
  const before = count();
  return async (many) => {
    if (count() < before + many) await here.logged((line) => line.msg === "request" && count() >= before + many);
  };
}

/**
 * Sends this many requests at once; all clients disconnect when the upstream has received them. Resolves when all of
 * them have ended.
 */
export async function leaveAtOnce(
  here: GatewayHere,
  client: Protocol,
  account: Pick<TestAccount, "key">,
  many: number,
  fields: Fields,
): Promise<void> {
  const ends = endsFromNow(here);
  here.simulator.hold();
  const before = here.simulator.count;
  const leaving = new AbortController();
  const running = Array.from({ length: many }, () =>
    ask(here, client, account.key, fields, { signal: leaving.signal }),
  );
  const gone = Promise.allSettled(running);
  await here.simulator.waitFor(before + many);
  leaving.abort();
  await gone;
  await ends(many);
  here.simulator.release();
}

/** The account's ledger lines for its requests, all of which have ended. */
export async function linesOf(here: GatewayHere, account: TestAccount): Promise<LedgerLine[]> {
  await assertAtRest(here, account);
  return usageLines(here, account);
}

/** The sum of the lines of one kind, in US dollars. */
export function sumOf(lines: readonly LedgerLine[], kind: string): string {
  return formatUsd(nanoUsd(lines.filter((line) => line.kind === kind).reduce((sum, { amount }) => sum + amount, 0n)));
}
