/** The forms of what the admin API answers about notices. */

import type { Static } from "../vocabulary.ts";
import { count, flag, instant, object, orNull, page, text } from "./shape.ts";

const WaitingNotice = object("WaitingNotices", {
  account: orNull(text("The account's name; null: what is of no account.", "alice")),
  waiting: count("How many wait.", 2),
  dropped: count("How many were dropped ahead of them, since too many waited.", 0),
  oldest_kind: text("What the oldest tells of.", "balance_low"),
  oldest_at: instant("When that was."),
  failures: count("Tries of it that failed.", 3),
  last_error: orNull(text("Why the last one did.", "it answered 503")),
  next_try_at: orNull(instant("When it is tried again; null: at once, or not known here.")),
});
export type WaitingNoticeAnswer = Static<typeof WaitingNotice>;

export const NoticesPage = page("NoticesPage", WaitingNotice, {
  receiver: orNull(
    text("Where they go, without path and query; null: the configuration names none.", "https://hooks.example"),
  ),
  delivering: flag("Whether this gateway delivers; if not, another one that shares the store does."),
  stopped: orNull(text("Why none is sent any more; null: they are sent.", "it answered 410 (gone)")),
});

export const NoticeTestShape = object("NoticeTest", {
  id: text("Its `webhook-id`.", "msg_2yqV4lW8nQf0b1c2d3e4f5g6h7i"),
  delivered: flag("Whether the receiver answered 2xx."),
  status: orNull(count("The receiver's status; null: it gave none.", 200)),
  milliseconds: count("How long that took.", 42),
  reason: text("Why it was not taken; empty when it was.", ""),
  advice: text("What to look at.", "Compare the secret of notices with the one that the receiver has."),
});

export const RetriedShape = object("NoticesRetried", {
  delivering: flag("Whether this gateway delivers now."),
});
