/** docs/failure-model.md row 65: an event of a passed stream takes no longer, however much its item has already. */
import assert from "node:assert/strict";
import test from "node:test";
import { DeliveredItems } from "../../../../src/convert/responses/delivered-items.ts";
import { workTimer } from "../../../rig/stopwatch.ts";

type Event = Readonly<Record<string, unknown>>;

const EVENTS = 3_000;
/** A copy at each event takes more than ten times as long. */
const TIMES_MAX = 5;
/** What a machine that does something else may add. */
const MARGIN_MS = 20;

function list<T>(length: number, one: (n: number) => T): readonly T[] {
  return Array.from({ length }, (_, n) => one(n));
}

const added = (item: object) => ({ type: "response.output_item.added", output_index: 0, item });
const message = (content: readonly object[]) => added({ type: "message", id: "m", content });
const part = (annotations: readonly object[]) => ({ type: "output_text", text: "", annotations });

/** How many of what an item has, the event by which it begins, and the nth event after it. */
const STREAMS: readonly (readonly [string, number, (size: number) => Event, (n: number) => Event])[] = [
  [
    "arguments of a call with many members",
    2_000,
    (size) => added({ type: "function_call", ...Object.fromEntries(list(size, (n) => [`member${n}`, n])) }),
    () => ({ type: "response.function_call_arguments.delta", output_index: 0, delta: "x" }),
  ],
  [
    "parts of a message with many parts",
    60_000,
    (size) => message(list(size, () => part([]))),
    () => ({ type: "response.content_part.added", output_index: 0, content_index: 0, part: part([]) }),
  ],
  [
    "annotations of a part with many annotations",
    60_000,
    (size) => message([part(list(size, (n) => ({ n })))]),
    (n) => ({
      type: "response.output_text.annotation.added",
      output_index: 0,
      content_index: 0,
      annotation: { n },
    }),
  ],
];

for (const [name, many, opening, after] of STREAMS) {
  const workAfter = (size: number): number => {
    const items = new DeliveredItems();
    items.see(opening(size), 1);
    const events = list(EVENTS, after);
    const worked = workTimer();
    for (const event of events) items.see(event, 1);
    return worked();
  };
  const leastOf = (size: number) => Math.min(...list(3, () => workAfter(size)));

  test(name, () => {
    const [small, large] = [leastOf(1), leastOf(many)];
    assert.ok(large < TIMES_MAX * small + MARGIN_MS, `${large} ms in a large item, ${small} ms in a small one`);
  });
}

test("what an upstream has sent is not changed by it", () => {
  const items = new DeliveredItems();
  const content: object[] = [];
  const annotations: object[] = [];
  const item = { type: "message", id: "m", status: "in_progress", content };
  const place = { output_index: 0, content_index: 0 };
  items.see(added(item), 1);
  items.see({ ...place, type: "response.content_part.added", part: part(annotations) }, 1);
  items.see({ ...place, type: "response.output_text.annotation.added", annotation: { n: 1 } }, 1);
  const [closed] = items.close(() => {});
  assert.deepEqual(closed?.content, [part([{ n: 1 }])]);
  assert.deepEqual([content, annotations, item.status], [[], [], "in_progress"]);
});
