/**
 * What each attempt at an upstream cost and who pays for it, as finance reads it (ARCHITECTURE.md promise 3). The model
 * costs its client 1 USD (input) and 10 USD (output) per million tokens, times two in this group; it costs the operator
 * 0.50 and 5 at the upstream east, which is tried first, and 0.80 and 8 at west. Every answer has 1000 tokens in and
 * 100 out; the question has 79 bytes, 20 tokens. A row that begins with a bar is another line of the same request. The
 * 429 is last, because its upstream gets no requests for a while after it.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { formatUsd } from "../../../../src/values/money.ts";
import {
  type ConfigPlaces,
  type GatewayHere,
  startGatewayHere,
  type TestAccount,
  testConfig,
} from "../../../rig/gateway.ts";
import { ask, assertAtRest } from "../../protocol/whole/asking.ts";
import { tollgate } from "./rig.ts";

const LINES = `
  east, then west   | status | kind     | from                          | to               | usd
  answers           | 200    | usage    | account                       | revenue:twice    | 0.004
  500, answers      | 200    | usage    | account                       | revenue:twice    | 0.004
  reset, answers    | 200    | usage    | account                       | revenue:twice    | 0.004
                    |        | absorbed | absorbed:upstream_unavailable | upstream:east    | 0.00001
  no-json, answers  | 200    | usage    | account                       | revenue:twice    | 0.004
                    |        | absorbed | absorbed:upstream_invalid     | upstream:east    | 0.00003
  500, 500          | 403    | -        |                               |                  |
  reset, reset      | 403    | absorbed | absorbed:upstream_unavailable | upstream:east    | 0.00001
                    |        | absorbed | absorbed:upstream_unavailable | upstream:west    | 0.000016
  reset, 429        | 429    | absorbed | absorbed:upstream_unavailable | upstream:east    | 0.00001
`;

const TRIES = `
  line | try | upstream | outcome              | status | in   | out | counted  | cost     | paid by  | why
  2    | 1   | east     | ok                   | 200    | 1000 | 100 | upstream | 0.001    | client   | answered
  3    | 1   | east     | upstream_unavailable | 500    | 0    | 0   | none     | 0.00     | nobody   | refused
  3    | 2   | west     | ok                   | 200    | 1000 | 100 | upstream | 0.0016   | client   | answered
  4    | 1   | east     | upstream_unavailable | -      | 20   | 0   | estimate | 0.00001  | absorbed | sent
  4    | 2   | west     | ok                   | 200    | 1000 | 100 | upstream | 0.0016   | client   | answered
  6    | 1   | east     | upstream_invalid     | 200    | 20   | 4   | estimate | 0.00003  | absorbed | sent
  6    | 2   | west     | ok                   | 200    | 1000 | 100 | upstream | 0.0016   | client   | answered
  9    | 1   | east     | upstream_unavailable | -      | 20   | 0   | estimate | 0.00001  | absorbed | sent
  9    | 2   | west     | upstream_unavailable | -      | 20   | 0   | estimate | 0.000016 | absorbed | sent
  10   | 1   | east     | upstream_unavailable | -      | 20   | 0   | estimate | 0.00001  | absorbed | sent
  10   | 2   | west     | upstream_rate_limit  | 429    | 0    | 0   | none     | 0.00     | nobody   | refused
`;

const BEHAVIORS: Readonly<Record<string, Parameters<GatewayHere["simulator"]["program"]>[0]>> = {
  answers: { usage: { input: 1_000, output: 100 } },
  reset: { fault: { resetBeforeHeaders: true } },
  "no-json": { fault: { status: 200, body: "no JSON at all" } as object },
  "500": { fault: { status: 500 } },
  "429": { fault: { status: 429 } },
};

const duo = (places: ConfigPlaces): string => {
  // Both upstreams fail more often in a row than a default server may before it is ejected.
  const health = { failures: 1000, failure_percent: 100 };
  const server = { protocol: "chat", base_url: places.upstreamUrl, health } as const;
  return testConfig(places, {
    upstreams: { east: { ...server, api_key: "canary-east" }, west: { ...server, api_key: "canary-west" } },
    models: {
      duo: {
        plans: ["free"],
        price: { input: "1", output: "10" },
        context_tokens: 200000,
        max_output_tokens: 32000,
        routes: [
          { upstream: "east", cost: { input: "0.5", output: "5" } },
          { upstream: "west", priority: 1, cost: { input: "0.8", output: "8" } },
        ],
      },
    },
    groups: { twice: { kind: "pay_per_use", models: ["duo"], multiplier: "2.0" } },
  });
};

const cellsOf = (row: string) => row.split("|").map((cell) => cell.trim());
const rowsOf = (table: string) => table.trim().split("\n").slice(1).map(cellsOf);

async function settled(here: GatewayHere, account: TestAccount, behaviors: string): Promise<number> {
  for (const name of behaviors.split(", ")) here.simulator.program(BEHAVIORS[name] ?? assert.fail(name));
  const reply = await ask(here, "chat", account.key, { model: "duo" });
  await reply.text();
  await assertAtRest(here, account);
  here.simulator.clearPrograms();
  return reply.status;
}

test("every request leaves the ledger lines that finance expects, and each attempt is listed once", async (t) => {
  const here = await startGatewayHere({ config: duo });
  t.after(() => here.close());
  const account = await here.account({ group: "twice", usd: "1" });
  const rows = rowsOf(LINES);
  let seq = 1;
  for (const [index, [behaviors = "", status = "", kind = "", from, to, usd]] of rows.entries()) {
    if (behaviors !== "") assert.equal(await settled(here, account, behaviors), Number(status), behaviors);
    const lines = await here.store.readLedger(account.tag, seq, 10);
    const [line] = lines;
    if (kind === "-") {
      assert.deepEqual(lines, [], behaviors);
      continue;
    }
    assert.ok(line, behaviors);
    seq = line.seq;
    const shown = [line.kind, line.debit.replace(/^acct_.*/, "account"), line.credit, formatUsd(line.amount)];
    assert.deepEqual(shown, [kind, from, to, usd], behaviors);
    if (rows[index + 1]?.[0] !== "") assert.equal(lines.length, 1, `${behaviors}: leaves nothing else`);
  }

  const shown = await tollgate(here, "--json", "ledger", "show", "--account", account.name, "--attempts");
  const { items } = JSON.parse(shown.out) as { items: Record<string, unknown>[] };
  const told = items.map((one) =>
    [
      ...[one.seq, one.attempt, one.upstream, one.outcome, one.status ?? "-", one.input_tokens, one.output_tokens],
      ...[one.counted, one.cost_usd, one.paid_by, one.why],
    ].join(" | "),
  );
  const expected = rowsOf(TRIES).map((cells) => cells.join(" | "));
  assert.deepEqual(told, expected);

  const verified = await tollgate(here, "ledger", "verify", "--account", account.name);
  assert.equal(verified.status, 0, verified.err);

  const table = await tollgate(here, "ledger", "show", "--account", account.name, "--attempts", "--limit", "3");
  assert.match(table.out, /^SEQ +AT +REQUEST +TRY +UPSTREAM .*PAID BY +WHY\n *2 +\S+ +req_\w{24} +1 +east /);
  assert.match(table.err, /--attempts --after 3/);
  const csv = await tollgate(here, "ledger", "show", "--account", account.name, "--attempts", "--format", "csv");
  assert.equal(csv.out.trimEnd().split("\r\n").length, expected.length + 1);
});

test("a client that disconnects while the upstream works is not charged; what the attempt may have cost is absorbed", async (t) => {
  const here = await startGatewayHere({ config: duo });
  t.after(() => here.close());
  const account = await here.account({ group: "twice", usd: "1" });
  here.simulator.hold();
  const leaving = new AbortController();
  const running = ask(here, "chat", account.key, { model: "duo" }, { signal: leaving.signal });
  await here.simulator.waitFor(1);
  leaving.abort();
  await assert.rejects(running);
  await here.logged((line) => line.msg === "request" && line.cause === "client_gone");
  here.simulator.release();
  const [, line, ...more] = await here.store.readLedger(account.tag, 0, 10);
  assert.deepEqual(more, []);
  assert.deepEqual(
    [line?.kind, line?.debit, line?.credit, line && formatUsd(line.amount), line?.balance],
    // There is no count because of the client, so its input is taken at its upper bound, 27 tokens.
    ["absorbed", "absorbed:client_gone", "upstream:east", "0.0000135", 1_000_000_000n],
  );
});
