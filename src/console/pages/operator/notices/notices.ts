/** Notices that wait for the receiver, with buttons to test it and to retry. */
import type { WaitingNoticeAnswer } from "../../../answers/notices.ts";
import { ask } from "../../parts/api.ts";
import { count, fromNow } from "../../parts/format.ts";
import { useAnswer } from "../../parts/load.ts";
import { html, type VNode } from "../../parts/view.ts";
import { Awaited, Table } from "../../parts/widgets.ts";
import { T } from "../../texts/texts.ts";
import { Write } from "../common/write.ts";

interface NoticesAnswer {
  readonly items: readonly WaitingNoticeAnswer[];
  readonly receiver: string | null;
  readonly delivering: boolean;
  readonly stopped: string | null;
}
interface TestAnswer {
  readonly delivered: boolean;
  readonly status: number | null;
  readonly milliseconds: number;
  readonly reason: string;
  readonly advice: string;
}
const W = T.operator.notices;

const COLUMNS = [
  { title: T.operator.account, cell: (row: WaitingNoticeAnswer) => row.account ?? "–" },
  { title: W.waiting, cell: (row: WaitingNoticeAnswer) => count(row.waiting), isNumber: true },
  { title: W.dropped, cell: (row: WaitingNoticeAnswer) => count(row.dropped), isNumber: true },
  {
    title: W.oldest,
    cell: (row: WaitingNoticeAnswer) =>
      html`<code>${row.oldest_kind}</code><br /><small>${fromNow(row.oldest_at)}</small>`,
  },
  {
    title: W.failures,
    cell: (row: WaitingNoticeAnswer) =>
      html`${count(row.failures)}${row.last_error !== null && html`<br /><small>${row.last_error}</small>`}`,
  },
  { title: W.nextTry, cell: (row: WaitingNoticeAnswer) => (row.next_try_at === null ? "–" : fromNow(row.next_try_at)) },
];

export function Notices(): VNode {
  const notices = useAnswer<NoticesAnswer>("/notices");
  const test = async () => {
    const sent = await ask<TestAnswer>("/notices/test", { method: "POST" });
    if (sent.delivered) return html`<p class="note" role="status">${W.delivered(count(sent.milliseconds))}</p>`;
    return html`<div class="problem" role="alert"><p><strong>${W.notDelivered(sent.reason)}</strong></p><p>${sent.advice}</p></div>`;
  };
  const retry = async () => {
    await ask("/notices/retry", { method: "POST" });
    return undefined;
  };
  return html`<h1>${W.title}</h1>
    <${Awaited} loaded=${notices}>${(data: NoticesAnswer) => html`
      ${data.receiver === null ? html`<p class="note">${W.noReceiver}</p>` : html`<p>${W.receiver} <code>${data.receiver}</code></p>`}
      ${data.stopped !== null && html`<p class="note warn">${W.stopped(data.stopped)}</p>`}
      ${data.receiver !== null && !data.delivering && html`<p class="note">${W.notHere}</p>`}
      ${
        data.receiver !== null &&
        html`<div class="row actions">
        <${Write} label=${W.test} about="" words=${W.testWords} send=${test} />
        <${Write} label=${W.retry} about="" words=${W.retryWords} send=${retry} onDone=${notices.reload} />
      </div>`
      }
      <h2>${W.queue}</h2>
      <${Table} caption=${W.queue} columns=${COLUMNS} rows=${data.items} keyOf=${(row: WaitingNoticeAnswer) => row.account ?? ""} empty=${W.none} />`}</${Awaited}>`;
}
