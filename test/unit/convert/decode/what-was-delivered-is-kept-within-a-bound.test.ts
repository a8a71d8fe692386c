/** docs/decisions/streams-without-a-limit-are-held-in-steps.md: what is kept to be repeated has a bound, however it is told. */
import assert from "node:assert/strict";
import test from "node:test";
import { DeliveredItems } from "../../../../src/convert/responses/delivered-items.ts";

type Event = Readonly<Record<string, unknown>>;

const WORDS = "a".repeat(1_000_000);
const item = (text: string) => ({ id: "msg_1", type: "message", content: [{ type: "output_text", text }] });
const part = (text: string) => ({ type: "output_text", text });
const at = (output_index: number, content_index = 0) => ({ output_index, content_index });

/** How many items are repeated at the end of a stream of these events. */
function kept(events: Iterable<Event>): number {
  const items = new DeliveredItems();
  for (const event of events) items.see(event, JSON.stringify(event).length);
  return items.close(() => {}).length;
}

const times = (count: number, event: (index: number) => Event) => Array.from({ length: count }, (_, at) => event(at));
const added = { type: "response.output_item.added", output_index: 0, item: item("") };

test("ended items count", () => {
  const done = (output_index: number) => ({ type: "response.output_item.done", output_index, item: item(WORDS) });
  assert.equal(kept(times(10, done)), 10);
  assert.equal(kept(times(20, done)), 0);
  assert.equal(kept(times(100, () => done(0))), 1, "one that is told again takes the place of the first");
});

test("parts, ended texts and annotations count", () => {
  const parts = times(20, (index) => ({ type: "response.content_part.done", ...at(0, index), part: part(WORDS) }));
  assert.equal(kept([added, ...parts]), 0);
  const note = { type: "response.output_text.annotation.added", ...at(0), annotation: { title: WORDS } };
  assert.equal(
    kept([added, { ...at(0), type: "response.content_part.added", part: part("") }, ...times(20, () => note)]),
    0,
  );
});

test("deltas count by what they say, and the end of their item counts in their place", () => {
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
