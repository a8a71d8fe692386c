/**
 * A system rule adds its text in the form of the upstream's protocol, and the client's own text stays byte for byte.
 */
import assert from "node:assert/strict";
import test from "node:test";
import fc from "fast-check";
import { rewriteBody } from "../../../../src/convert/rewrite/rewrite.ts";
import type { Protocol } from "../../../../src/values/protocol.ts";
import { addedBytes, type RuleAction } from "../../../../src/values/rules.ts";
import { actionsOf, applied, rewritten } from "./applying.ts";

const at = (protocol: Protocol, place: "start" | "end", body: string) =>
  rewritten(protocol, body, [{ system: { text: 'Say "hi".', at: place } }]);
const OURS = 'Say \\"hi\\".';

/** A body, and the same body with a text added at the start and at the end. */
const CASES: Readonly<Record<Protocol, readonly (readonly [string, string, string])[]>> = {
  chat: [
    [
      '{"messages": [ {"role":"user","content":"x"} ]}',
      `{"messages": [{"role":"system","content":"${OURS}"}, {"role":"user","content":"x"} ]}`,
      `{"messages": [{"role":"system","content":"${OURS}"}, {"role":"user","content":"x"} ]}`,
    ],
    [
      '{"messages":[]}',
      `{"messages":[{"role":"system","content":"${OURS}"}]}`,
      `{"messages":[{"role":"system","content":"${OURS}"}]}`,
    ],
    [
      '{"messages":[{"content" : "\\u0041b" , "role":"system"},{"role":"user","content":"x"}], "n":1}',
      `{"messages":[{"content" : "${OURS}\\n\\n\\u0041b" , "role":"system"},{"role":"user","content":"x"}], "n":1}`,
      `{"messages":[{"content" : "\\u0041b\\n\\n${OURS}" , "role":"system"},{"role":"user","content":"x"}], "n":1}`,
    ],
    [
      '{"messages":[{"role":"developer","content":"a"},{"role":"s\\u0079stem","content":[{"type":"text","text":"b"}]},{"role":"user"},{"role":"system","content":"c"}]}',
      `{"messages":[{"role":"developer","content":"${OURS}\\n\\na"},{"role":"s\\u0079stem","content":[{"type":"text","text":"b"}]},{"role":"user"},{"role":"system","content":"c"}]}`,
      `{"messages":[{"role":"developer","content":"a"},{"role":"s\\u0079stem","content":[{"type":"text","text":"b"},{"type":"text","text":"${OURS}"}]},{"role":"user"},{"role":"system","content":"c"}]}`,
    ],
    [
      '{"messages":[{"role":"system","content":null},{"role":"user"}]}',
      `{"messages":[{"role":"system","content":"${OURS}"},{"role":"system","content":null},{"role":"user"}]}`,
      `{"messages":[{"role":"system","content":null},{"role":"system","content":"${OURS}"},{"role":"user"}]}`,
    ],
    ['{"messages":"no"}', '{"messages":"no"}', '{"messages":"no"}'],
    [
      '{"messages":[7]}',
      `{"messages":[{"role":"system","content":"${OURS}"},7]}`,
      `{"messages":[{"role":"system","content":"${OURS}"},7]}`,
    ],
  ],
  messages: [
    ['{"messages":[]}', `{"messages":[],"system":"${OURS}"}`, `{"messages":[],"system":"${OURS}"}`],
    ['{"system":null }', `{"system":"${OURS}" }`, `{"system":"${OURS}" }`],
    ['{"system":"","a":1}', `{"system":"${OURS}","a":1}`, `{"system":"${OURS}","a":1}`],
    ['{"system": "\\u00e9"}', `{"system": "${OURS}\\n\\n\\u00e9"}`, `{"system": "\\u00e9\\n\\n${OURS}"}`],
    [
      '{"system":[ ]}',
      `{"system":[{"type":"text","text":"${OURS}"} ]}`,
      `{"system":[ {"type":"text","text":"${OURS}"}]}`,
    ],
    [
      '{"system":[ {"type":"text","text":"a","cache_control":{"type":"ephemeral"}} ]}',
      `{"system":[{"type":"text","text":"${OURS}"}, {"type":"text","text":"a","cache_control":{"type":"ephemeral"}} ]}`,
      `{"system":[ {"type":"text","text":"a","cache_control":{"type":"ephemeral"}} ,{"type":"text","text":"${OURS}"}]}`,
    ],
    ['{"system":7}', '{"system":7}', '{"system":7}'],
  ],
  responses: [
    ['{"input":"x"}', `{"input":"x","instructions":"${OURS}"}`, `{"input":"x","instructions":"${OURS}"}`],
    ['{"instructions":"a"}', `{"instructions":"${OURS}\\n\\na"}`, `{"instructions":"a\\n\\n${OURS}"}`],
    ['{"instructions":["a"]}', '{"instructions":["a"]}', '{"instructions":["a"]}'],
  ],
};

for (const [protocol, cases] of Object.entries(CASES) as [Protocol, (typeof CASES)[Protocol]][]) {
  test(`${protocol}: a system text is added before or after the client's own`, () => {
    for (const [body, atStart, atEnd] of cases) {
      assert.equal(at(protocol, "start", body), atStart);
      assert.equal(at(protocol, "end", body), atEnd);
      assert.equal(rewritten(protocol, body, [{ system: { text: 'Say "hi".' } }]), atEnd);
    }
  });
}

test("chat: the text has the role that the upstream knows", () => {
  const actions = actionsOf([{ system: { text: "t" } }]);
  const body = rewriteBody(Buffer.from('{"messages":[]}'), { protocol: "chat", systemRole: "developer" }, actions);
  assert.equal(Buffer.from(body).toString(), '{"messages":[{"role":"developer","content":"t"}]}');
});

test("several texts are added in the order of the rules, and later rules see them", () => {
  const rules = [
    { system: { text: "one" } },
    { system: { text: "two" } },
    { system: { text: "zero", at: "start" } },
    { set: { temperature: 0 } },
  ];
  assert.equal(rewritten("messages", "{}", rules), '{"system":"zero\\n\\none\\n\\ntwo","temperature":0}');
});

test("property: the estimate covers what rules add, for any text and body", () => {
  const text = fc.string({ unit: "binary", minLength: 1, maxLength: 40 }).filter((one) => one.trim() !== "");
  const bodies = fc.constantFrom(
    ...Object.values(CASES)
      .flat()
      .map(([body]) => body),
    "{}",
    '{"reasoning":{}}',
  );
  fc.assert(
    fc.property(text, bodies, fc.constantFrom<Protocol>("chat", "messages", "responses"), (added, body, protocol) => {
      const json = JSON.stringify(added);
      const actions: RuleAction[] = [
        { kind: "system", text: added, at: "end" },
        { kind: "default", members: [{ path: ["reasoning", "effort"], json }] },
        { kind: "set", members: [{ path: ["user"], json }] },
        { kind: "set", members: [{ path: ["a", "b", "c"], json: `[${json}]` }] },
      ];
      const grown = Buffer.byteLength(applied(protocol, body, actions)) - Buffer.byteLength(body);
      assert.ok(grown <= addedBytes(actions), `${grown}`);
    }),
    { numRuns: 1_000 },
  );
});
