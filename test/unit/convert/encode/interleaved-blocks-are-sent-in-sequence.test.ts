/**
 * The sequencer: a client gets one block at a time, even if the upstream interleaves its blocks
 * (docs/translation-rules.md rule 56).
 */
import assert from "node:assert/strict";
import test from "node:test";
import fc from "fast-check";
import type { BlockKey, ReplyEvent } from "../../../../src/convert/hub-reply.ts";
import { QUEUED_CHARS_MAX, Sequencer } from "../../../../src/convert/sequence.ts";
import { callOf, eventsOf, replyOf, textItem } from "./encoding.ts";

type BlockEvent = Extract<ReplyEvent, { readonly key: BlockKey }>;

const F = { kind: "function", name: "f" } as const;

function start(key: string): ReplyEvent {
  return { type: "tool-start", key, id: key, tool: F };
}

function delta(key: string, input: string): ReplyEvent {
  return { type: "tool-delta", key, input };
}

function end(key: string, input: string): ReplyEvent {
  return { type: "tool-end", key, input };
}

function outline(events: readonly ReplyEvent[]): string {
  return events.map((event) => `${event.type}${"key" in event ? ` ${event.key}` : ""}`).join(", ");
}

test("a call whose arguments are complete ends when the next one begins", () => {
  const sequencer = new Sequencer();
  const told = [start("a"), delta("a", '{"x":1}'), start("b")].flatMap((event) => sequencer.push(event));
  assert.equal(outline(told), "tool-start a, tool-delta a, tool-end a, tool-start b");
  assert.deepEqual(told[2], end("a", '{"x":1}'));
  assert.deepEqual(sequencer.push(end("a", '{"x":1}')), [], "the end sent by the upstream is ignored");
});

test("a call whose arguments are not complete stays open", () => {
  const sequencer = new Sequencer();
  const first = [start("a"), delta("a", '{"x":"}'), start("b"), delta("b", "{}")];
  assert.equal(outline(first.flatMap((event) => sequencer.push(event))), "tool-start a, tool-delta a");
  assert.equal(
    outline(sequencer.push(delta("a", '"}'))),
    "tool-delta a, tool-end a, tool-start b, tool-delta b",
    "the last brace completes the call",
  );
});

test("a freeform call ends only when the upstream ends it", () => {
  const sequencer = new Sequencer();
  const tool = { kind: "custom", name: "exec" } as const;
  const events: ReplyEvent[] = [{ type: "tool-start", key: "a", id: "a", tool }, delta("a", "{}"), start("b")];
  assert.equal(outline(events.flatMap((event) => sequencer.push(event))), "tool-start a, tool-delta a");
  assert.equal(outline(sequencer.push(end("a", "{}"))), "tool-end a, tool-start b");
});

test("an event that belongs to no block does not wait", () => {
  const sequencer = new Sequencer();
  sequencer.push(start("a"));
  sequencer.push(start("b"));
  assert.deepEqual(sequencer.push({ type: "ping" }), [{ type: "ping" }]);
});

test("what has left the queue does not count towards its maximum size", () => {
  const sequencer = new Sequencer();
  const mebibyte = "x".repeat(1_048_576);
  sequencer.push(start("0"));
  for (let at = 0; at * mebibyte.length <= QUEUED_CHARS_MAX; at++) {
    sequencer.push(start(String(at + 1)));
    sequencer.push(delta(String(at + 1), mebibyte));
    const told = sequencer.push(end(String(at), ""));
    assert.equal(outline(told), `tool-end ${at}, tool-start ${at + 1}, tool-delta ${at + 1}`);
  }
});

test("an image is complete as it is, and the next block follows at once", () => {
  const sequencer = new Sequencer();
  const image: ReplyEvent = { type: "image", key: "i", url: "data:image/png;base64,AA==" };
  assert.equal(outline([image, start("a")].flatMap((event) => sequencer.push(event))), "image i, tool-start a");
});

test("the queue has a maximum size", () => {
  const sequencer = new Sequencer();
  sequencer.push(start("a"));
  sequencer.push(start("b"));
  const mebibyte = "x".repeat(1_048_576);
  for (let chars = 0; chars < QUEUED_CHARS_MAX; chars += mebibyte.length) sequencer.push(delta("b", mebibyte));
  assert(sequencer.overflowed);
  assert.deepEqual(sequencer.push({ type: "ping" }), []);
});

test("any interleaving gives complete blocks in the order of their starts, and nothing is lost", () => {
  const item = fc.oneof(
    fc.string({ maxLength: 8 }).map((text) => textItem(text)),
    fc
      .dictionary(fc.string({ maxLength: 3 }), fc.string({ maxLength: 5 }))
      .map((input) => callOf("id", F, JSON.stringify(input))),
  );
  const picks = fc.infiniteStream(fc.nat());
  fc.assert(
    fc.property(fc.array(item, { maxLength: 5 }), picks, (items, random) => {
      const events = eventsOf(replyOf(items));
      const blocks = items.map((_, index) => events.filter((event) => "key" in event && event.key === String(index)));
      const mixed = interleaved(blocks as BlockEvent[][], random);
      const sequencer = new Sequencer();
      const told = mixed.flatMap((event) => sequencer.push(event)) as BlockEvent[];
      const begun = [...new Set(mixed.map((event) => event.key))];
      assert.deepEqual(
        told,
        begun.flatMap((key) => blocks[Number(key)] as BlockEvent[]),
      );
    }),
    { numRuns: 1_000 },
  );
});

/** One of the orders in which upstreams might send these blocks. */
function interleaved(blocks: readonly BlockEvent[][], random: Iterator<number>): BlockEvent[] {
  const left = blocks.map((block) => [...block]).filter((block) => block.length > 0);
  const mixed: BlockEvent[] = [];
  while (left.length > 0) {
    const index = Number(random.next().value) % left.length;
    const event = left[index]?.shift();
    if (event) mixed.push(event);
    if (left[index]?.length === 0) left.splice(index, 1);
  }
  return mixed;
}
