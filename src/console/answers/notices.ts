/** The forms of the admin API's answers about notices. */

import type { Static } from "../vocabulary.ts";
import { count, flag, instant, object, orNull, page, text } from "./shape.ts";

const WaitingNotice = object("WaitingNotices", {
  account: orNull(text("The account's name; null: notices that belong to no account.", "alice")),
  waiting: count("How many notices wait.", 2),
  dropped: count("How many notices were dropped before them, because too many waited.", 0),
  oldest_kind: text("The kind of the oldest waiting notice.", "balance_low"),
  oldest_at: instant("When its event happened."),
  failures: count("Failed attempts to deliver it.", 3),
  last_error: orNull(text("Why the last attempt failed.", "it answered 503")),
  next_try_at: orNull(instant("When it is retried; null: at once, or not known here.")),
});
export type WaitingNoticeAnswer = Static<typeof WaitingNotice>;

export const NoticesPage = page("NoticesPage", WaitingNotice, {
  receiver: orNull(
    text("The receiver, without path and query; null: the configuration has none.", "https://hooks.example"),
  ),
  delivering: flag("Whether this gateway delivers; if not, another one that shares the store does."),
  stopped: orNull(text("Why no more notices are sent; null: they are sent.", "it answered 410 (gone)")),
});

export const NoticeTestShape = object("NoticeTest", {
  id: text("Its `webhook-id`.", "msg_2yqV4lW8nQf0b1c2d3e4f5g6h7i"),
  delivered: flag("Whether the receiver answered 2xx."),
  status: orNull(count("The receiver's status; null: it sent none.", 200)),
  milliseconds: count("How long the delivery took.", 42),
  reason: text("Why it was not accepted; empty if it was accepted.", ""),
  advice: text("What to check.", "Check that the receiver has one of the secrets in notices."),
});

export const RetriedShape = object("NoticesRetried", {
  delivering: flag("Whether this gateway delivers now."),
});
