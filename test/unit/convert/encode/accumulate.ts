/** What a simple client makes of a stream: the whole object, put together from the deltas alone. */
import assert from "node:assert/strict";
import { framesOf } from "../translate/rig.ts";

type Json = Record<string, unknown>;

/** A chat client adds up everything by index. */
export function accumulateChat(stream: string): Json {
  const message: Json = {};
  const calls: Json[] = [];
  let body: Json = {};
  const frames = framesOf(stream);
  assert.equal(frames.pop()?.data, "[DONE]");
  for (const { data } of frames) {
    const { choices = [], object: _object, ...rest } = data as { choices?: Json[]; object?: string };
    body = { ...body, ...Object.fromEntries(Object.entries(rest).filter(([, value]) => value != null)) };
    const [choice] = choices;
    if (!choice) continue;
    if (choice.finish_reason !== null) body.finish_reason = choice.finish_reason;
    const { tool_calls = [], images = [], ...delta } = choice.delta as Json & { tool_calls?: Json[]; images?: Json[] };
    if (images.length > 0) message.images = [...((message.images as Json[] | undefined) ?? []), ...images];
    for (const [name, value] of Object.entries(delta)) {
      message[name] = typeof value === "string" && name !== "role" ? `${message[name] ?? ""}${value}` : value;
    }
    for (const { index, ...piece } of tool_calls) addCall(calls, Number(index), piece);
  }
  return { ...body, message: { ...message, ...(calls.length > 0 ? { tool_calls: calls } : {}) } };
}

function addCall(calls: Json[], index: number, piece: Json): void {
  assert(index <= calls.length, "indices of calls are dense");
  const call = calls[index];
  if (!call) {
    calls.push(structuredClone(piece));
    return;
  }
  for (const name of ["function", "custom"]) {
    const member = name === "function" ? "arguments" : "input";
    const more = piece[name] as Json | undefined;
    const held = call[name] as Json | undefined;
    if (more && held) held[member] = `${held[member]}${more[member]}`;
  }
}

/** A messages client reads one block after the other. */
export function accumulateMessages(stream: string): Json {
  let message: Json = {};
  const content: Json[] = [];
  let open: Json | undefined;
  let json = "";
  for (const { event, data } of framesOf(stream)) {
    assert.equal(event, data.type);
    if (event === "message_start") message = data.message as Json;
    if (event === "content_block_start") {
      assert.equal(open, undefined, "blocks never overlap");
      assert.equal(data.index, content.length, "indices are dense");
      open = data.content_block as Json;
      json = "";
    }
    if (event === "content_block_delta") {
      assert(open);
      const { type: _type, partial_json, ...delta } = data.delta as Json;
      json += partial_json ?? "";
      for (const [name, value] of Object.entries(delta)) open[name] = `${open[name]}${value}`;
    }
    if (event === "content_block_stop") {
      assert(open);
      if (json !== "") open.input = inputOf(json);
      content.push(open);
      open = undefined;
    }
    if (event === "message_delta") message = { ...message, ...(data.delta as Json), usage: data.usage };
  }
  assert.equal(open, undefined);
  return { ...message, content };
}

/** Arguments that a model left incomplete become an empty object, as in the official SDK. */
function inputOf(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    return {};
  }
}

/** A responses client uses each item's `done` (Codex). The deltas and the terminal event must agree with it. */
export function accumulateResponses(stream: string): Json {
  const items: Json[] = [];
  const deltas = new Map<string, string>();
  let added: Json | undefined;
  let last: Json = {};
  for (const [index, { event, data }] of framesOf(stream).entries()) {
    assert.equal(event, data.type);
    assert.equal(data.sequence_number, index, "numbers have no gap");
    if (event === "response.output_item.added") {
      assert.equal(added, undefined, "items never overlap");
      assert.equal(data.output_index, items.length);
      added = data.item as Json;
    }
    const place = `${data.item_id}/${data.content_index ?? data.summary_index ?? ""}`;
    if (event?.endsWith(".delta")) {
      assert.equal(data.item_id, added?.id);
      deltas.set(place, `${deltas.get(place) ?? ""}${data.delta}`);
    }
    const whole = data.text ?? data.refusal ?? data.arguments ?? data.input;
    if (event?.endsWith(".done") && whole !== undefined && whole !== "{}") {
      assert.equal(deltas.get(place) ?? "", whole, "deltas add up");
    }
    if (event === "response.output_item.done") {
      assert.equal((data.item as Json).id, added?.id);
      items.push(data.item as Json);
      added = undefined;
    }
    last = data;
  }
  const response = last.response as Json;
  assert.deepEqual(response.output, items, "the terminal event repeats the items (rule 53)");
  return response;
}
