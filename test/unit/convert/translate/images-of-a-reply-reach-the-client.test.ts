/**
 * Rule 18: an image that a model makes is sent in the form of the client's protocol, or noted in the text if the
 * protocol has none; whole and streamed alike.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { chatDeltas, choiceOf, chunk, completion, frameAt, type Json } from "./payloads.ts";
import { convertInOnePush, framesOf, routeOf, smallBody, sse, wholeOf } from "./rig.ts";

const PNG = "iVBORw0KGgo=";
const DATA = `data:image/png;base64,${PNG}`;
const REMOTE = "https://pictures.example/a.png";
const NOTE = "[The model made an image, which this protocol cannot carry.]";

const image = (url: string) => ({ type: "image_url", image_url: { url } });
const fromChat = (...urls: string[]) =>
  completion({ role: "assistant", content: "Here.", images: urls.map(image) }, "stop");
const chatStream = (...urls: string[]) =>
  sse("chat", [
    chunk({ role: "assistant", content: "Here." }),
    ...urls.map((url) => chunk({ images: [image(url)] })),
    chunk({}, "stop"),
  ]);

const ITEM = { id: "ig_1", type: "image_generation_call", status: "completed", result: PNG };
const SAID = {
  id: "msg_1",
  type: "message",
  role: "assistant",
  status: "completed",
  content: [{ type: "output_text", text: "Here.", annotations: [] }],
};
const response = (...output: Json[]) => ({ id: "resp_1", object: "response", status: "completed", model: "u", output });
const fromResponses = (more: Json = {}) => response(SAID, { ...ITEM, ...more });

/** A stream as the vendor sends it: stages, a preview, and the final image. */
function responsesStream(repeated = true): string {
  const place = { item_id: "ig_1", output_index: 1 };
  return sse("responses", [
    { type: "response.created", response: { ...response(), status: "in_progress" } },
    { type: "response.output_item.added", output_index: 0, item: { ...SAID, content: [], status: "in_progress" } },
    { type: "response.output_text.delta", item_id: "msg_1", output_index: 0, content_index: 0, delta: "Here." },
    { type: "response.output_item.done", output_index: 0, item: SAID },
    { type: "response.output_item.added", output_index: 1, item: { ...ITEM, status: "in_progress", result: null } },
    { type: "response.image_generation_call.generating", ...place },
    {
      type: "response.image_generation_call.partial_image",
      ...place,
      partial_image_b64: "cHJldmlldw==",
      partial_image_index: 0,
    },
    { type: "response.image_generation_call.completed", ...place },
    { type: "response.output_item.done", output_index: 1, item: ITEM },
    { type: "response.completed", response: repeated ? response(SAID, ITEM) : response() },
  ]);
}

function streamed(client: "chat" | "messages" | "responses", upstream: "chat" | "responses", bytes: string): string {
  return convertInOnePush(client, smallBody(client), routeOf(upstream), bytes).text;
}

const textsOf = (blocks: unknown) => (blocks as Json[]).map(({ text }) => text);

test("a messages client gets a note in place of an image, with its address if it has one", () => {
  const ask = smallBody("messages");
  assert.deepEqual(textsOf(wholeOf("messages", ask, routeOf("chat"), fromChat(DATA, REMOTE)).content), [
    "Here.",
    NOTE,
    `[image: ${REMOTE}]`,
  ]);
  assert.deepEqual(textsOf(wholeOf("messages", ask, routeOf("responses"), fromResponses()).content), ["Here.", NOTE]);
  for (const stream of [
    streamed("messages", "chat", chatStream(DATA)),
    streamed("messages", "responses", responsesStream()),
  ]) {
    const deltas = framesOf(stream).flatMap(
      ({ data }) => ((data.delta as Json | undefined)?.text as string | undefined) ?? [],
    );
    assert.deepEqual(deltas, ["Here.", NOTE]);
  }
});

test("a chat client gets OpenRouter's form, whichever upstream made the image", () => {
  const { message } = choiceOf(
    wholeOf("chat", smallBody("chat"), routeOf("responses"), fromResponses({ output_format: "webp" })),
  );
  assert.deepEqual(message.images, [
    { type: "image_url", image_url: { url: `data:image/webp;base64,${PNG}` }, index: 0 },
  ]);
  assert.equal(message.content, "Here.");
  for (const repeated of [true, false]) {
    const images = chatDeltas(streamed("chat", "responses", responsesStream(repeated))).flatMap(
      (delta) => (delta.images ?? []) as Json[],
    );
    assert.deepEqual(images, [{ type: "image_url", image_url: { url: DATA }, index: 0 }]);
  }
});

test("a responses client gets an item, or the address in the text", () => {
  const ask = smallBody("responses", { store: false });
  const body = wholeOf("responses", ask, routeOf("chat"), fromChat(REMOTE, DATA));
  const [said, made, ...more] = body.output as Json[];
  assert.deepEqual(more, []);
  assert.deepEqual(textsOf(said?.content), ["Here.", `[image: ${REMOTE}]`]);
  const { id, ...rest } = made ?? {};
  assert.match(String(id), /^ig_[0-9A-Za-z]{24}$/);
  assert.deepEqual(rest, { type: "image_generation_call", status: "completed", output_format: "png", result: PNG });
  const frames = framesOf(streamed("responses", "chat", chatStream(DATA)));
  const done = frames.filter(
    ({ event, data }) => event === "response.output_item.done" && (data.item as Json).type === ITEM.type,
  );
  assert.deepEqual(
    done.map(({ data }) => (data.item as Json).result),
    [PNG],
  );
  const last = (frameAt(frames, -1).data.response as Json).output as Json[];
  assert.equal(last.at(-1)?.result, PNG);
});

test("a client that may refer to items does not get the image a second time inside an id", () => {
  const large = `data:image/png;base64,${"A".repeat(400_000)}`;
  const body = wholeOf("responses", smallBody("responses", { store: true }), routeOf("chat"), fromChat(large));
  const made = (body.output as Json[]).at(-1);
  assert.match(String(made?.id), /^ig_gw1\./);
  assert.ok(String(made?.id).length < 1_000);
  const bytes = convertInOnePush(
    "responses",
    smallBody("responses", { store: true }),
    routeOf("chat"),
    chatStream(large),
  ).text;
  assert.ok(bytes.length < 400_000 * 2.5, "the image is in its item and in the last event only");
});

test("a value that is not an image is left out", () => {
  for (const url of ["javascript:alert(1)", "data:text/html;base64,aGk=", "data:image/png;base64,a b", "", 7, null]) {
    const { message } = choiceOf(
      wholeOf("chat", smallBody("chat"), routeOf("responses"), fromResponses({ result: url })),
    );
    assert.equal(message.images, undefined, String(url));
    const bad = completion(
      { role: "assistant", content: "Here.", images: [{ type: "image_url", image_url: { url } }, 3] },
      "stop",
    );
    const { content } = wholeOf("messages", smallBody("messages"), routeOf("chat"), bad);
    assert.equal((content as Json[]).length, 1, String(url));
  }
});

test("images in parts of the content are sent, and a reply may consist of an image only", () => {
  const parts = completion({ role: "assistant", content: [{ type: "text", text: "Here." }, image(DATA)] }, "stop");
  const body = wholeOf("responses", smallBody("responses", { store: false }), routeOf("chat"), parts);
  assert.deepEqual(
    (body.output as Json[]).map(({ type }) => type),
    ["message", "image_generation_call"],
  );
  const only = completion({ role: "assistant", content: null, images: [image(DATA)] }, "stop");
  const { content } = wholeOf("messages", smallBody("messages"), routeOf("chat"), only);
  assert.deepEqual(
    (content as Json[]).map(({ text }) => text),
    [NOTE],
  );
});
