/**
 * docs/decisions/streams-without-a-limit-are-held-in-steps.md: the items that are kept in order to be repeated at the
 * end have a size limit, in whatever form they come.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { DeliveredItems } from "../../../../src/convert/responses/delivered-items.ts";

type Event = Readonly<Record<string, unknown>>;

const WORDS = "a".repeat(1_000_000);
const item = (text: string) => ({ id: "msg_1", type: "message", content: [{ type: "output_text", text }] });
const part = (text: string) => ({ type: "output_text", text });
const at = (output_index: number, content_index = 0) => ({ output_index, content_index });

/** The number of items that are repeated at the end of a stream of these events. */
function kept(events: Iterable<Event>): number {
  const items = new DeliveredItems();
  for (const event of events) items.see(event, JSON.stringify(event).length);
  return items.close(() => {}).length;
}

const times = (count: number, event: (index: number) => Event) => Array.from({ length: count }, (_, at) => event(at));
const added = { type: "response.output_item.added", output_index: 0, item: item("") };

test("completed items count for the limit", () => {
  const done = (output_index: number) => ({ type: "response.output_item.done", output_index, item: item(WORDS) });
  assert.equal(kept(times(10, done)), 10);
  assert.equal(kept(times(20, done)), 0);
  assert.equal(kept(times(100, () => done(0))), 1, "an item that is sent again replaces the first");
});

test("parts, completed texts and annotations count for the limit", () => {
  const parts = times(20, (index) => ({ type: "response.content_part.done", ...at(0, index), part: part(WORDS) }));
  assert.equal(kept([added, ...parts]), 0);
  const note = { type: "response.output_text.annotation.added", ...at(0), annotation: { title: WORDS } };
  assert.equal(
    kept([added, { ...at(0), type: "response.content_part.added", part: part("") }, ...times(20, () => note)]),
    0,
  );
});

test("deltas count for the limit, and the completed item replaces its deltas", () => {
  const delta = { type: "response.output_text.delta", ...at(0), delta: WORDS };
  const said = (count: number) => [
    added,
    { type: "response.content_part.added", ...at(0), part: part("") },
    ...times(count, () => delta),
  ];
  assert.equal(kept(said(15)), 1);
  assert.equal(kept(said(20)), 0);
  const ended = { type: "response.output_item.done", output_index: 0, item: item(WORDS.repeat(6)) };
  const second = { type: "response.output_item.done", output_index: 1, item: item(WORDS.repeat(8)) };
  assert.equal(kept([...said(6), ended, second]), 2);
});
