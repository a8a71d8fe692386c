/** Random well-formed conversations, written in each protocol. */
import fc from "fast-check";
import type { Protocol } from "../../../../src/values/protocol.ts";
import type { Body } from "./translate.ts";

type NotePlace = "question" | "answer" | "results";

/** One round: what the user says, what the assistant answers, which tools it calls and what they return. */
export interface Round {
  readonly user: string;
  /** An image next to what the user says. */
  readonly image: boolean;
  /** Reasoning before the answer: of the same server, which can read it, or of another. */
  readonly thought: "own" | "foreign" | undefined;
  /** Work of a hosted tool before the answer; chat has no form for it. */
  readonly hosted: boolean;
  /** May be blank. */
  readonly says: string;
  readonly calls: readonly { readonly id: string; readonly input: string; readonly output: string }[];
  /** Whether the results are in reverse order. */
  readonly reversed: boolean;
  /** Whether results are lists of parts. */
  readonly parts: boolean;
  /** System text before the answer, after its calls or after their results. */
  readonly note: { readonly text: string; readonly after: NotePlace } | undefined;
}

export interface Script {
  readonly system: string;
  readonly rounds: readonly Round[];
  /** Undefined: the conversation ends with the last round, in results or in reasoning. */
  readonly last: string | undefined;
  readonly stream: boolean;
  readonly limit: number;
}

/** Text that no protocol refuses, because it is not blank. */
const word = fc.string({ minLength: 1, maxLength: 12, unit: "grapheme" }).map((text) => `.${text}.`);

const call = fc.record({
  id: fc.oneof(fc.stringMatching(/^call_[a-z0-9]{1,8}$/), fc.constantFrom("functions.f:0", "a b", "x".repeat(80))),
  input: fc.dictionary(fc.constantFrom("a", "b"), fc.oneof(word, fc.integer(), fc.boolean()), {
    noNullPrototype: true,
  }),
  output: word,
});

const round: fc.Arbitrary<Round> = fc.record({
  user: word,
  image: fc.boolean(),
  thought: fc.constantFrom(undefined, "own", "foreign"),
  hosted: fc.boolean(),
  says: fc.oneof({ weight: 3, arbitrary: word }, fc.constantFrom("", "", " ", "\n\n")),
  calls: fc
    .uniqueArray(call, { maxLength: 3, selector: (one) => one.id })
    .map((calls) => calls.map((one) => ({ ...one, input: JSON.stringify(one.input) }))),
  reversed: fc.boolean(),
  parts: fc.boolean(),
  note: fc.option(fc.record({ text: word, after: fc.constantFrom<NotePlace[]>("question", "answer", "results") }), {
    nil: undefined,
  }),
});

export const scripts: fc.Arbitrary<Script> = fc
  .record({
    system: fc.oneof(word, fc.constant("")),
    rounds: fc.array(round, { maxLength: 4 }),
    last: fc.option(word, { nil: undefined }),
    stream: fc.boolean(),
    limit: fc.integer({ min: 16, max: 30_000 }),
  })
  .map((script) => ({ ...script, last: script.last ?? (mayEnd(script.rounds.at(-1)) ? undefined : ".last.") }));

/** Whether a client sends this as the end of a conversation, and does not mean it as the beginning of the answer. */
function mayEnd(last: Round | undefined): boolean {
  return last !== undefined && (last.calls.length > 0 || (last.thought !== undefined && last.says === ""));
}

function isBlank(text: string): boolean {
  return text.trim() === "";
}

/** All texts that must arrive, in their order. */
export function textsOf(script: Script): readonly string[] {
  return [script.system, ...script.rounds.flatMap((one) => [one.user, one.says]), script.last ?? ""].filter(
    (text) => !isBlank(text),
  );
}

function results(one: Round): Round["calls"] {
  return one.reversed ? [...one.calls].reverse() : one.calls;
}

/** Whether the assistant has a turn in this round. */
function speaks(one: Round): boolean {
  return one.says !== "" || one.calls.length > 0 || one.thought !== undefined || one.hosted;
}

const SCHEMA = { type: "object", properties: { a: {}, b: {} } };
const PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const PICTURE = `data:image/png;base64,${PIXEL}`;

/** The system text of a round, if its place is here. */
function notes(one: Round, after: NotePlace, note: (text: string) => Body): readonly Body[] {
  return one.note?.after === after ? [note(one.note.text)] : [];
}

/**
 * A script as a client of the protocol would send it.
 * @param sealed reasoning of the same server, as the client got it.
 */
export const REQUEST_OF: Readonly<Record<Protocol, (script: Script, sealed: string) => Body>> = {
  chat: (script, sealed) => ({
    model: "big-1",
    messages: [
      ...(script.system === "" ? [] : [{ role: "system", content: script.system }]),
      ...script.rounds.flatMap((one) => {
        const note = (content: string) => ({ role: "developer", content });
        const tool_calls = one.calls.map(({ id, input }) => ({
          id,
          type: "function",
          function: { name: "f", arguments: input },
        }));
        const image = { type: "image_url", image_url: { url: PICTURE } };
        const answer = {
          role: "assistant",
          content: one.says,
          ...(one.thought && { reasoning_content: one.thought === "own" ? sealed : "thought" }),
          ...(tool_calls.length > 0 && { tool_calls }),
        };
        return [
          { role: "user", content: one.image ? [{ type: "text", text: one.user }, image] : one.user },
          ...notes(one, "question", note),
          ...(speaks(one) ? [answer] : []),
          ...notes(one, "answer", note),
          ...results(one).map(({ id, output }) => ({
            role: "tool",
            tool_call_id: id,
            content: one.parts ? [{ type: "text", text: output }] : output,
          })),
          ...notes(one, "results", note),
        ];
      }),
      ...(script.last === undefined ? [] : [{ role: "user", content: script.last }]),
    ],
    tools: [{ type: "function", function: { name: "f", parameters: SCHEMA } }],
    max_completion_tokens: script.limit,
    stream: script.stream,
  }),
  messages: (script, sealed) => ({
    model: "big-1",
    max_tokens: script.limit,
    ...(script.system === "" ? {} : { system: script.system }),
    messages: [
      ...script.rounds.flatMap((one) => {
        const note = (text: string) => ({ role: "system", content: [{ type: "text", text }] });
        const uses = one.calls.map(({ id, input }) => ({ type: "tool_use", id, name: "f", input: JSON.parse(input) }));
        const text = one.says === "" ? [] : [{ type: "text", text: one.says }];
        const signature = one.thought === "own" ? sealed : "foreign";
        const thinking = one.thought ? [{ type: "thinking", thinking: "thought", signature }] : [];
        const search = { type: "server_tool_use", id: "srvtoolu_1", name: "web_search", input: { query: "q" } };
        const found = { type: "web_search_tool_result", tool_use_id: "srvtoolu_1", content: [] };
        const hosted = one.hosted ? [search, found] : [];
        const outputs = results(one).map(({ id, output }) => ({
          type: "tool_result",
          tool_use_id: id,
          content: one.parts ? [{ type: "text", text: output }] : output,
        }));
        const source = { type: "base64", media_type: "image/png", data: PIXEL };
        const asked = [{ type: "text", text: one.user }, ...(one.image ? [{ type: "image", source }] : [])];
        return [
          { role: "user", content: one.image ? asked : one.user },
          ...notes(one, "question", note),
          ...(speaks(one) ? [{ role: "assistant", content: [...thinking, ...hosted, ...text, ...uses] }] : []),
          ...notes(one, "answer", note),
          ...(outputs.length > 0 ? [{ role: "user", content: outputs }] : []),
          ...notes(one, "results", note),
        ];
      }),
      ...(script.last === undefined ? [] : [{ role: "user", content: [{ type: "text", text: script.last }] }]),
    ],
    tools: [{ name: "f", input_schema: SCHEMA }],
    stream: script.stream,
  }),
  responses: (script, sealed) => ({
    model: "big-1",
    ...(script.system === "" ? {} : { instructions: script.system }),
    input: [
      ...script.rounds.flatMap((one) => {
        const note = (content: string) => ({ role: "developer", content });
        const encrypted_content = one.thought === "own" ? sealed : "foreign";
        const reasoning = { type: "reasoning", id: "rs_1", summary: [], encrypted_content };
        const search = { type: "web_search_call", id: "ws_1", status: "completed", action: { type: "search" } };
        const said = { type: "message", role: "assistant", content: [{ type: "output_text", text: one.says }] };
        const asked = [
          { type: "input_text", text: one.user },
          { type: "input_image", image_url: PICTURE },
        ];
        return [
          { role: "user", content: one.image ? asked : one.user },
          ...notes(one, "question", note),
          ...(one.thought ? [reasoning] : []),
          ...(one.hosted ? [search] : []),
          ...(one.says === "" ? [] : [said]),
          ...one.calls.map(({ id, input }) => ({ type: "function_call", call_id: id, name: "f", arguments: input })),
          ...notes(one, "answer", note),
          ...results(one).map(({ id, output }) => ({
            type: "function_call_output",
            call_id: id,
            output: one.parts ? [{ type: "input_text", text: output }] : output,
          })),
          ...notes(one, "results", note),
        ];
      }),
      ...(script.last === undefined ? [] : [{ role: "user", content: [{ type: "input_text", text: script.last }] }]),
    ],
    tools: [{ type: "function", name: "f", parameters: SCHEMA }],
    max_output_tokens: script.limit,
    stream: script.stream,
  }),
};
