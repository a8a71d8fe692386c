/** Random well-formed conversations, written in each protocol. */
import fc from "fast-check";
import type { Protocol } from "../../../../src/values/protocol.ts";
import type { Body } from "./translate.ts";

/** One round: what the user says, what the assistant answers, which tools it calls and what they return. */
export interface Round {
  readonly user: string;
  readonly says: string;
  readonly calls: readonly { readonly id: string; readonly input: string; readonly output: string }[];
  /** Whether the results are in reverse order. */
  readonly reversed: boolean;
  /** System text after the calls, before or after their results. */
  readonly note: { readonly text: string; readonly early: boolean } | undefined;
}

export interface Script {
  readonly system: string;
  readonly rounds: readonly Round[];
  readonly last: string;
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
  says: fc.oneof(word, fc.constant("")),
  calls: fc
    .uniqueArray(call, { maxLength: 3, selector: (one) => one.id })
    .map((calls) => calls.map((one) => ({ ...one, input: JSON.stringify(one.input) }))),
  reversed: fc.boolean(),
  note: fc.option(fc.record({ text: word, early: fc.boolean() }), { nil: undefined }),
});

export const scripts: fc.Arbitrary<Script> = fc.record({
  system: fc.oneof(word, fc.constant("")),
  rounds: fc.array(round, { maxLength: 4 }),
  last: word,
  stream: fc.boolean(),
  limit: fc.integer({ min: 16, max: 30_000 }),
});

/** All texts that must arrive, in their order. */
export function textsOf(script: Script): readonly string[] {
  return [
    ...(script.system === "" ? [] : [script.system]),
    ...script.rounds.flatMap((one) => [one.user, ...(one.says === "" ? [] : [one.says])]),
    script.last,
  ];
}

function results(one: Round): Round["calls"] {
  return one.reversed ? [...one.calls].reverse() : one.calls;
}

/** Whether the assistant has a turn in this round. */
function speaks(one: Round): boolean {
  return one.says !== "" || one.calls.length > 0;
}

const SCHEMA = { type: "object", properties: { a: {}, b: {} } };

/** A script as a client of the protocol would send it. */
export const REQUEST_OF: Readonly<Record<Protocol, (script: Script) => Body>> = {
  chat: (script) => ({
    model: "big-1",
    messages: [
      ...(script.system === "" ? [] : [{ role: "system", content: script.system }]),
      ...script.rounds.flatMap((one) => {
        const note = one.note && { role: "developer", content: one.note.text };
        const tool_calls = one.calls.map(({ id, input }) => ({
          id,
          type: "function",
          function: { name: "f", arguments: input },
        }));
        const answer = { role: "assistant", content: one.says, ...(tool_calls.length > 0 ? { tool_calls } : {}) };
        return [
          { role: "user", content: one.user },
          ...(speaks(one) ? [answer] : []),
          ...(note && one.note?.early ? [note] : []),
          ...results(one).map(({ id, output }) => ({ role: "tool", tool_call_id: id, content: output })),
          ...(note && !one.note?.early ? [note] : []),
        ];
      }),
      { role: "user", content: script.last },
    ],
    tools: [{ type: "function", function: { name: "f", parameters: SCHEMA } }],
    max_completion_tokens: script.limit,
    stream: script.stream,
  }),
  messages: (script) => ({
    model: "big-1",
    max_tokens: script.limit,
    ...(script.system === "" ? {} : { system: script.system }),
    messages: [
      ...script.rounds.flatMap((one) => {
        const note = one.note && { role: "system", content: [{ type: "text", text: one.note.text }] };
        const uses = one.calls.map(({ id, input }) => ({ type: "tool_use", id, name: "f", input: JSON.parse(input) }));
        const text = one.says === "" ? [] : [{ type: "text", text: one.says }];
        const outputs = results(one).map(({ id, output }) => ({
          type: "tool_result",
          tool_use_id: id,
          content: output,
        }));
        return [
          { role: "user", content: one.user },
          ...(speaks(one) ? [{ role: "assistant", content: [...text, ...uses] }] : []),
          ...(note && one.note?.early ? [note] : []),
          ...(outputs.length > 0 ? [{ role: "user", content: outputs }] : []),
          ...(note && !one.note?.early ? [note] : []),
        ];
      }),
      { role: "user", content: [{ type: "text", text: script.last }] },
    ],
    tools: [{ name: "f", input_schema: SCHEMA }],
    stream: script.stream,
  }),
  responses: (script) => ({
    model: "big-1",
    ...(script.system === "" ? {} : { instructions: script.system }),
    input: [
      ...script.rounds.flatMap((one) => {
        const note = one.note && { role: "developer", content: one.note.text };
        const said = { type: "message", role: "assistant", content: [{ type: "output_text", text: one.says }] };
        return [
          { role: "user", content: one.user },
          ...(one.says === "" ? [] : [said]),
          ...one.calls.map(({ id, input }) => ({ type: "function_call", call_id: id, name: "f", arguments: input })),
          ...(note && one.note?.early ? [note] : []),
          ...results(one).map(({ id, output }) => ({ type: "function_call_output", call_id: id, output })),
          ...(note && !one.note?.early ? [note] : []),
        ];
      }),
      { role: "user", content: [{ type: "input_text", text: script.last }] },
    ],
    tools: [{ type: "function", name: "f", parameters: SCHEMA }],
    max_output_tokens: script.limit,
    stream: script.stream,
  }),
};
