/**
 * Notices: list those that wait, test the receiver, retry, and set the balance threshold of an account. The caller
 * provides the delivery.
 */
import { GATEWAY_OUTBOX, NOTICES_PAGE_MAX, type Outbox, waitingCount } from "../../store/notices.ts";
import { formatUsd, NANO_USD_MAX, nanoUsd, parseUsd } from "../../values/money.ts";
import { AccountShape } from "../answers/answers.ts";
import { NoticesPage, NoticeTestShape, RetriedShape, type WaitingNoticeAnswer } from "../answers/notices.ts";
import { showAccount } from "../answers/present.ts";
import { readLimit } from "../input/parameters.ts";
import { accountNamed } from "../named-accounts.ts";
import { AdminRefusal, accountClosed, malformed, noSuchAccount } from "../refusal.ts";
import { AccountPath, closed, Type, Usd } from "../vocabulary.ts";
import { AccountsQuery } from "./accounts.ts";
import { type ConsoleParts, type ConsoleRoute, route } from "./contract.ts";

/** `null`: the threshold of the configuration. */
const NewThreshold = Type.Object({ below_usd: Type.Union([Usd, Type.Null()]) }, closed);

/** The state of an account's delivery at this gateway. */
interface DeliveryState {
  readonly failures: number;
  readonly nextInMs: number;
  readonly reason: string | undefined;
}

export interface NoticeSender {
  readonly notices?: {
    /** Undefined without a receiver. */
    readonly status: () =>
      | { readonly receiver: string; readonly isLeader: boolean; readonly stopped: string | undefined }
      | undefined;
    readonly laneOf: (outbox: Outbox) => DeliveryState | undefined;
    /** Sends a test notice; undefined without a receiver. */
    readonly test: () => Promise<
      | {
          readonly id: string;
          readonly outcome: "taken" | "gone" | "failed";
          readonly status: number | undefined;
          readonly ms: number;
          readonly reason: string;
        }
      | undefined
    >;
    /** Retries everything now, at this gateway; false without a receiver. Rejects with StoreError. */
    readonly retry: () => Promise<boolean>;
  };
}

const SAFE_TO_REPEAT = "Repeat the request: if it was already done, it changes nothing.";

export function noticeRoutes(parts: ConsoleParts & NoticeSender): readonly ConsoleRoute[] {
  const { store, notices } = parts;
  return [
    route({
      method: "PUT",
      path: "/accounts/:name/notify",
      id: "setNotifyBelow",
      summary: "Set the balance below which a notice is sent for an account",
      description:
        "`null`: the threshold of the configuration. If the balance is already below it, the next notice is sent after it was above it again.",
      answers: { 200: AccountShape },
      refusals: { 404: "`unknown_account`.", 409: "`account_closed`." },
      params: AccountPath,
      body: NewThreshold,
      write: {
        what: "account.notify",
        target: ({ params }) => params.name,
        facts: ({ body }) => ({ below_usd: body.below_usd ?? "none" }),
        whenUnknown: SAFE_TO_REPEAT,
      },
      async handle({ params, body }) {
        const below = body.below_usd === null ? undefined : readThreshold(body.below_usd);
        const before = await accountNamed(store, params.name);
        if (before.status === "closed") throw accountClosed(params.name);
        const after = await store.setNotifyBelow(before.tag, below === undefined ? undefined : nanoUsd(below));
        if (after === undefined) throw noSuchAccount(params.name);
        return { status: 200, body: showAccount(after), repeated: before.notifyBelow === below };
      },
    }),
    ...(notices ? deliveryRoutes(parts, notices) : []),
  ];
}

function waitingRoute({ store, clock }: ConsoleParts, notices: NonNullable<NoticeSender["notices"]>): ConsoleRoute {
  const rowOf = async (outbox: Outbox): Promise<WaitingNoticeAnswer | undefined> => {
    const waiting = await store.readNotices(outbox, 1);
    const [head] = waiting.notices;
    if (!head) return undefined;
    const lane = notices.laneOf(outbox);
    const nextMs = lane && clock.wallMs() + lane.nextInMs;
    return {
      account: outbox === GATEWAY_OUTBOX ? null : waiting.name,
      waiting: waitingCount(waiting),
      dropped: head.seq - waiting.taken - 1,
      oldest_kind: head.kind,
      oldest_at: new Date(head.atMs).toISOString(),
      failures: lane?.failures ?? 0,
      last_error: lane?.reason ?? null,
      next_try_at: nextMs === undefined || !lane?.failures ? null : new Date(nextMs).toISOString(),
    };
  };
  return route({
    method: "GET",
    path: "/notices",
    id: "listNotices",
    summary: "List the notices that wait for the receiver, by account",
    description:
      "A page checks up to `limit` accounts and shows those with waiting notices; the first page begins " +
      "with notices that belong to no account. Failures are those that this gateway saw.",
    answers: { 200: NoticesPage },
    query: Type.Object(
      { cursor: AccountsQuery.properties.cursor, limit: AccountsQuery.properties.limit },
      { additionalProperties: false },
    ),
    async handle({ query }) {
      const limit = readLimit(query.limit, NOTICES_PAGE_MAX);
      const page = await store.pageNotices(query.cursor, limit);
      const boxes: Outbox[] = [
        ...(query.cursor === undefined ? [GATEWAY_OUTBOX] : []),
        ...page.items.map(({ tag }) => tag),
      ];
      const rows = await Promise.all(boxes.map(rowOf));
      const status = notices.status();
      const body = {
        receiver: status?.receiver ?? null,
        delivering: status?.isLeader ?? false,
        stopped: status?.stopped ?? null,
        items: rows.filter((row) => row !== undefined),
        next: page.next ?? null,
      };
      return { status: 200, body };
    },
  });
}

function deliveryRoutes(parts: ConsoleParts, notices: NonNullable<NoticeSender["notices"]>): readonly ConsoleRoute[] {
  return [
    waitingRoute(parts, notices),
    route({
      method: "POST",
      path: "/notices/test",
      id: "testNotices",
      summary: "Send a signed test notice to the receiver now",
      description: "It is sent once, ahead of waiting notices, and reports no event.",
      answers: { 200: NoticeTestShape },
      refusals: { 409: "`no_receiver`." },
      write: { what: "webhook.test", target: () => "receiver", whenUnknown: SAFE_TO_REPEAT },
      async handle() {
        const sent = await notices.test();
        if (!sent) throw noReceiver();
        const { id, outcome, status = null, ms, reason } = sent;
        const body = { id, delivered: outcome === "taken", status, milliseconds: ms, reason, advice: adviceOn(sent) };
        return { status: 200, body };
      },
    }),
    route({
      method: "POST",
      path: "/notices/retry",
      id: "retryNotices",
      summary: "Retry all waiting notices now",
      description:
        "This gateway takes over the delivery from another one. Also works after the receiver has answered 410.",
      answers: { 200: RetriedShape },
      refusals: { 409: "`no_receiver`." },
      write: { what: "webhook.retry", target: () => "receiver", whenUnknown: SAFE_TO_REPEAT },
      async handle() {
        if (!(await notices.retry())) throw noReceiver();
        return { status: 200, body: { delivering: notices.status()?.isLeader ?? false } };
      },
    }),
  ];
}

/** @throws AdminRefusal 400 */
function readThreshold(text: string): bigint {
  const amount = parseUsd(text);
  if (amount !== undefined) return amount;
  const rule = `an amount of at most ${formatUsd(NANO_USD_MAX)}: digits, and up to nine decimals after a point`;
  throw malformed(
    "below_usd",
    rule,
    'Write it like "5.00"; "0" means no notice, null the threshold of the configuration.',
  );
}

function noReceiver(): AdminRefusal {
  return new AdminRefusal(
    409,
    "no_receiver",
    "The configuration has no receiver for notices.",
    "Set one in the section notices: its url and the signing secrets.",
  );
}

/** What to check when a test notice was not accepted. */
function adviceOn({ outcome, status }: { readonly outcome: string; readonly status: number | undefined }): string {
  if (outcome === "taken") return "Check in the receiver's log that it verified the signature.";
  if (status === undefined) return "Check the url in notices, and that this machine can reach it.";
  if (status === 401 || status === 403) return "Check that the receiver has one of the secrets in notices.";
  if (status === 404 || status === 405)
    return "Check the path of the url in notices, and that the receiver accepts POST there.";
  if (status >= 300 && status < 400) return "Set the url in notices to the address that it redirects to.";
  if (status === 410)
    return "The receiver wants no more notices. Set another url in notices, or make the receiver accept notices again.";
  return "Check the receiver's log. A signature is valid for five minutes, so also compare the clocks.";
}
