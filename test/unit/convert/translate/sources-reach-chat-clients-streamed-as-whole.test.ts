/**
 * docs/translation-rules.md rules 42, 53 and 55: a chat client gets the sources on the web in a stream, too, in one delta
 * and with the positions that they have in a whole reply. Before, streams left them out.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { chatDeltas, choiceOf, type Json } from "./payloads.ts";
import { convertInOnePush, routeOf, smallBody, sse, wholeOf } from "./rig.ts";

const LONG = "Many short deltas of the first text are written without being parsed. ".repeat(4);
const TEXTS = [LONG, "Second 😀."];
const URLS = ["https://one.example", "https://two.example"];
const INDEXES = { start_index: 2, end_index: 5 };

/** Pieces of a text; a run of similar deltas takes the fast path. */
const piecesOf = (text: string) => text.match(/.{1,5}/gsu) ?? [];

function messagesReply(): { readonly whole: Json; readonly stream: string } {
  const source = (index: number) => ({
    type: "web_search_result_location",
    url: URLS[index],
    title: "T",
    cited_text: "c",
    encrypted_index: "e",
  });
  const message = { id: "msg_1", type: "message", role: "assistant", model: "u", stop_sequence: null };
  const usage = { input_tokens: 5, output_tokens: 9 };
  const content = TEXTS.map((text, index) => ({ type: "text", text, citations: [source(index)] }));
  const blocks = TEXTS.flatMap((text, index) => [
    { type: "content_block_start", index, content_block: { type: "text", text: "", citations: [] } },
    ...piecesOf(text).map((one) => ({ type: "content_block_delta", index, delta: { type: "text_delta", text: one } })),
    { type: "content_block_delta", index, delta: { type: "citations_delta", citation: source(index) } },
    { type: "content_block_stop", index },
  ]);
  return {
    whole: { ...message, content, stop_reason: "end_turn", usage },
    stream: sse("messages", [
      { type: "message_start", message: { ...message, content: [], stop_reason: null, usage } },
      ...blocks,
      { type: "message_delta", delta: { stop_reason: "end_turn", stop_sequence: null }, usage },
      { type: "message_stop" },
    ]),
  };
}

/** @param announced whether each source has an event of its own, or is in the final forms only. */
function responsesReply(announced: boolean): { readonly whole: Json; readonly stream: string } {
  const source = (index: number) => ({ type: "url_citation", url: URLS[index], title: "T", ...INDEXES });
  const part = (index: number) => ({ type: "output_text", text: TEXTS[index], annotations: [source(index)] });
  const item = (index: number) => ({ id: `msg_${index}`, type: "message", role: "assistant", content: [part(index)] });
  const response = { id: "resp_1", object: "response", status: "completed", model: "u" };
  const output = TEXTS.map((_, index) => item(index));
  const items = TEXTS.flatMap((text, index) => {
    const place = { item_id: `msg_${index}`, output_index: index, content_index: 0 };
    const added = { type: "response.output_text.annotation.added", ...place, annotation: source(index) };
    return [
      { type: "response.output_item.added", output_index: index, item: { ...item(index), content: [] } },
      ...piecesOf(text).map((delta) => ({ type: "response.output_text.delta", ...place, delta })),
      ...(announced ? [added] : []),
      { type: "response.content_part.done", ...place, part: part(index) },
      { type: "response.output_item.done", output_index: index, item: item(index) },
    ];
  });
  return {
    whole: { ...response, output },
    stream: sse("responses", [
      { type: "response.created", response: { ...response, status: "in_progress", output: [] } },
      ...items,
      { type: "response.completed", response: { ...response, output } },
    ]),
  };
}

const REPLIES = [
  ["messages", "messages", messagesReply()],
  ["responses", "responses", responsesReply(true)],
  ["responses without events for them", "responses", responsesReply(false)],
] as const;

for (const [name, upstream, { whole, stream }] of REPLIES) {
  test(`${name}: both sources come in one delta, with the positions of the whole reply`, () => {
    const reply = wholeOf("chat", smallBody("chat"), routeOf(upstream), whole);
    const expected = (choiceOf(reply).message as Json).annotations as Json[];
    assert.equal(expected.length, 2);

    const { text } = convertInOnePush("chat", smallBody("chat"), routeOf(upstream), stream);
    const deltas = chatDeltas(text).filter(({ annotations }) => annotations !== undefined);
    assert.deepEqual(
      deltas.map(({ annotations }) => annotations),
      [expected],
    );
  });
}
