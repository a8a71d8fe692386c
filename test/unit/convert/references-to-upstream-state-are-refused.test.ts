/**
 * If any part of a conversation or of its tools names an object that an upstream stores, the request is refused and the
 * part is named (ARCHITECTURE.md promise 14). Similar names inside the client's own data are not searched.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { refusedState } from "../../../src/convert/passthrough/request.ts";
import type { JsonObject } from "../../../src/values/json-object.ts";
import type { Protocol } from "../../../src/values/protocol.ts";
import { scanJson } from "../../../src/wire/json.ts";

/** The path of the first part that is refused. */
function placeIn(protocol: Protocol, json: JsonObject): string | undefined {
  const body = Buffer.from(JSON.stringify(json));
  const scan = scanJson(body);
  assert.ok("members" in scan);
  return refusedState({ protocol, body, json, scan, model: "m", stream: false })?.facts.param;
}

/** Parts that name a stored object, and the member that names it. */
const PARTS: readonly (readonly [JsonObject, string])[] = [
  [{ type: "input_file", file_id: "file_1" }, "file_id"],
  [{ type: "container_upload" }, "type"],
  [{ type: "file_search", vector_store_ids: [] }, "vector_store_ids"],
  [{ type: "code_interpreter", container: "cntr_1" }, "container"],
  [{ type: "input_file", file_id: ["file_1"] }, "file_id"],
  [{ type: "input_file", file_id: { 0: "file_1" } }, "file_id"],
  [{ type: "input_file", file_id: 1 }, "file_id"],
  [{ type: "x", file_ids: ["file_1"] }, "file_ids"],
  [{ type: "file_search", vector_store_ids: "vs_1" }, "vector_store_ids"],
];

/** Members of the same names that name no stored object. */
const HARMLESS: readonly JsonObject[] = [
  { type: "text", text: "container_upload", file_id: null },
  { type: "code_interpreter", container: { type: "auto" } },
  { type: "x", vector_store_ids: null },
  { type: "tool_use", input: { file_id: "data" } },
  { audio: { data: "AAAA" } },
  { audio: [{ text: "an element" }] },
];

const PLACES: readonly (readonly [Protocol, (part: JsonObject) => JsonObject, string])[] = [
  ["chat", (part) => ({ messages: [{ role: "user", content: "a" }, part] }), "messages[1]"],
  ["chat", (part) => ({ messages: [{ role: "user", content: [{ type: "text" }, part] }] }), "messages[0].content[1]"],
  ["chat", (part) => ({ messages: [{ content: [{ type: "file", file: part }] }] }), "messages[0].content[0].file"],
  ["chat", (part) => ({ messages: [], tools: [part] }), "tools[0]"],
  ...["input_audio", "audio_url", "video_url", "document", "attachments"].map(
    (name) =>
      [
        "chat",
        (part: JsonObject) => ({ messages: [{ content: [{ [name]: part }] }] }),
        `messages[0].content[0].${name}`,
      ] as const,
  ),
  ["messages", (part) => ({ messages: [{ content: [{ source: part }] }] }), "messages[0].content[0].source"],
  ["messages", (part) => ({ messages: [{ content: [{ content: [part] }] }] }), "messages[0].content[0].content[0]"],
  ["responses", (part) => ({ input: [{ role: "user", output: [part] }] }), "input[0].output[0]"],
];

test("a part that names a stored object is refused with its path", () => {
  for (const [protocol, around, place] of PLACES) {
    for (const [part, member] of PARTS) {
      const json = around(part);
      assert.equal(placeIn(protocol, json), `${place}.${member}`, JSON.stringify(json));
    }
  }
});

test("an earlier audio output is refused by its id", () => {
  const around = (audio: unknown) => ({ messages: [{ role: "assistant", audio }] });
  assert.equal(placeIn("chat", around({ id: "audio_1" })), "messages[0].audio.id");
  assert.equal(placeIn("chat", around({ id: ["audio_1"] })), "messages[0].audio.id");
  assert.equal(placeIn("chat", around([{ id: "audio_1" }])), "messages[0].audio[0].id");
});

test("of several parts the first is named", () => {
  const [file] = PARTS[0] as (typeof PARTS)[0];
  const later = { role: "user", content: [file, file] };
  assert.equal(placeIn("chat", { messages: [{ role: "user" }, later, later] }), "messages[1].content[0].file_id");
});

test("members that only look like references pass", () => {
  for (const part of HARMLESS) assert.equal(placeIn("chat", { messages: [{ content: [part] }, part] }), undefined);
});

/** Tools that name a stored object or a container of another size, and the member that does so. */
const TOOLS: readonly (readonly [JsonObject, string])[] = [
  [{ type: "file_search", vector_store_ids: ["vs_1"] }, "vector_store_ids"],
  [{ type: "file_search", vector_store_ids: "vs_1" }, "vector_store_ids"],
  [{ type: "file_search", vector_store_ids: { 0: "vs_1" } }, "vector_store_ids"],
  [{ type: "code_interpreter", file_ids: ["file_1"] }, "file_ids"],
  [{ type: "image_generation", input_image_mask: { file_id: "file_1" } }, "input_image_mask.file_id"],
  [{ type: "code_interpreter", container: "cntr_1" }, "container"],
  [{ type: "code_interpreter", container: ["cntr_1"] }, "container"],
  [{ type: "code_interpreter", container: { id: "cntr_1" } }, "container.id"],
  [{ type: "code_interpreter", container: { type: "container_reference", container_id: "cntr_1" } }, "container.type"],
  [{ type: "code_interpreter", container: { type: "auto", file_ids: ["file_1"] } }, "container.file_ids"],
  [{ type: "code_interpreter", container: { type: "auto", file_ids: "file_1" } }, "container.file_ids"],
  [{ type: "code_interpreter", container: { type: "auto", memory_limit: "64g" } }, "container.memory_limit"],
  [{ type: "shell", environment: "cntr_1" }, "environment"],
  [{ type: "computer_use_preview", environment: "cntr_1" }, "environment"],
  [{ type: "shell", environment: ["browser"] }, "environment"],
  [{ type: "shell", environment: { type: "container_reference", container_id: "cntr_1" } }, "environment.type"],
  [{ type: "shell", environment: { type: "container_auto", container_id: "cntr_1" } }, "environment.container_id"],
  [{ type: "shell", environment: { type: "container_auto", memory_limit: "4g" } }, "environment.memory_limit"],
  [
    { type: "shell", environment: { type: "container_auto", skills: [{ type: "skill_reference", skill_id: "s" }] } },
    "environment.skills[0]",
  ],
];

/** The places where a body may offer tools. */
const OFFERS: readonly (readonly [Protocol, (tool: JsonObject) => JsonObject, string])[] = [
  ["responses", (tool) => ({ tools: [{ type: "function", name: "f" }, tool] }), "tools[1]"],
  ["responses", (tool) => ({ tools: [{ type: "namespace", name: "n", tools: [tool] }] }), "tools[0].tools[0]"],
  ["responses", (tool) => ({ input: [{ type: "additional_tools", tools: [tool] }] }), "input[0].tools[0]"],
  ["responses", (tool) => ({ input: [{ type: "tool_search_output", tools: [tool] }] }), "input[0].tools[0]"],
  ["chat", (tool) => ({ messages: [], tools: [tool] }), "tools[0]"],
  ["messages", (tool) => ({ messages: [], tools: [tool] }), "tools[0]"],
];

test("a tool that names a stored object or a larger container is refused wherever it is offered", () => {
  for (const [protocol, around, place] of OFFERS) {
    for (const [tool, member] of TOOLS) {
      const json = around(tool);
      assert.equal(placeIn(protocol, json), `${place}.${member}`, JSON.stringify(json));
    }
  }
});

test("a tool that runs in a new container or at the client passes", () => {
  for (const tool of [
    { type: "code_interpreter", container: { type: "auto", file_ids: [], memory_limit: "1g" } },
    { type: "code_interpreter", container: { type: "auto", memory_limit: null, network_policy: { type: "disabled" } } },
    { type: "shell", environment: { type: "local", skills: [{ name: "n", description: "d", path: "/p" }] } },
    { type: "shell", environment: { type: "container_auto", skills: [{ type: "inline", name: "n", source: {} }] } },
    ...["browser", "linux", "mac", "ubuntu", "windows"].map((environment) => ({
      type: "computer_use_preview",
      environment,
    })),
    { type: "function", name: "f", parameters: { properties: { container: { type: "string" } } } },
  ])
    for (const [protocol, around] of OFFERS) assert.equal(placeIn(protocol, around(tool)), undefined);
});

test("references are also found in system texts and in the middle of a message", () => {
  const file = [{ type: "input_file", file_id: "file_1" }];
  assert.equal(placeIn("responses", { instructions: [{ content: file }] }), "instructions");
  const reference = { type: "item_reference", id: "rs_1" };
  assert.equal(placeIn("responses", { instructions: [reference] }), "instructions");
  assert.equal(placeIn("responses", { input: [{ content: [reference] }] }), "input[0].content[0].type");
  const source = { type: "file", file_id: "file_1" };
  assert.equal(placeIn("messages", { system: [{ type: "document", source }] }), "system[0].source.file_id");
});

/**
 * Bodies with duplicate or escaped names, from which another parser reads more than this one does, and the name that is
 * refused.
 */
const DOUBTED: readonly (readonly [Protocol, string, string])[] = [
  ["chat", '{"messages":[{"content":[{"type":"file","file":{"file_id":"f","file_id":null}}]}]}', "file[].file_id"],
  ["chat", '{"messages":[{"content":[{"type":"file","file":{"file_id":"f"},"file":null}]}]}', "content[].file"],
  ["messages", '{"messages":[{"content":[{"source":{"file_id":"f"},"source":{"type":"text"}}]}]}', "content[].source"],
  ["messages", '{"system":[{"type":"container_upload","file_id":"f","type":"text","file_id":null}]}', "system[].type"],
  [
    "responses",
    '{"tools":[{"type":"code_interpreter","container":{"type":"auto","file_ids":["f"],"file_ids":[]}}]}',
    "container[].file_ids",
  ],
  [
    "responses",
    '{"tools":[{"type":"code_interpreter","container":{"type":"auto","\\u0066ile_ids":["f"]}}]}',
    "container[].file_ids",
  ],
  [
    "responses",
    '{"input":[{"type":"additional_tools","tools":[{"type":"shell","environment":{"skills":[{"skill_id":"s"}],"skills":[]}}]}]}',
    "environment[].skills",
  ],
  [
    "responses",
    '{"tools":[{"type":"shell","environment":{"skills":[{"type":"inline","source":{"file_id":"f"},"source":{"type":"base64"}}]}}]}',
    "skills[].source",
  ],
  ["responses", '{"tools":[{"container":{"memory_limit":"64g","memory_limit":"1g"}}]}', "container[].memory_limit"],
  ["responses", '{"input":[{"type":"shell_call","environment":{"id":"e"},"environment":null}]}', "input[].environment"],
  ["responses", '{"input":[{"tools":[{"type":"mcp","tunnel_id":"t","tunnel_id":null}]}]}', "tools[].tunnel_id"],
  ["chat", '{"messages":[{"audio":{"id":"audio_1"},"audio":null}]}', "messages[].audio"],
  ["chat", '{"messages":[{"audio":{"id":"audio_1","id":null}}]}', "audio[].id"],
  ["responses", '{"input":[{"type":"item_reference","id":"rs_1","type":"message"}]}', "input[].type"],
  // In these no other member is a sign that there could be a reference.
  ["chat", '{"messages":[{"content":[{"\\u0066ile_id":"f"}]}]}', "content[].file_id"],
  ["responses", '{"tools":[{"type":"shell","skills":[{"id":"s"}],"skills":[]}]}', "tools[].skills"],
  ["responses", '{"tools":[{"memory_limit":"64g","memory_limit":"1g"}]}', "tools[].memory_limit"],
  ["responses", '{"tools":[{"input_image_mask":"f","input_image_mask":null}]}', "tools[].input_image_mask"],
  ["responses", '{"tools":[{"container":"c","container":null}]}', "tools[].container"],
  ["responses", '{"tools":[{"vector_store_ids":["v"],"vector_store_ids":null}]}', "tools[].vector_store_ids"],
  // Tools and addresses that a server that takes the first of two members would use.
  [
    "responses",
    '{"input":[{"type":"additional_tools","tools":[{"type":"web_search"}],"tools":[{"type":"function","name":"f"}]}]}',
    "input[].tools",
  ],
  [
    "responses",
    '{"input":[{"type":"additional_tools","tools":[{"type":"web_search","type":"custom"}]}]}',
    "tools[].type",
  ],
  [
    "responses",
    '{"input":[{"type":"tool_search_output","tools":[{"type":"web_search"}],"tools":[]}]}',
    "input[].tools",
  ],
  [
    "messages",
    '{"messages":[{"content":[{"type":"tool_addition","tool":{"definition":{"type":"web_search_20250305","type":"custom"}}}]}]}',
    "definition[].type",
  ],
  [
    "chat",
    '{"messages":[{"content":[{"image_url":{"url":"file:///etc/passwd","url":"https://a.b/c.png"}}]}]}',
    "image_url[].url",
  ],
  ["messages", '{"messages":[{"content":[{"source":{"url":"gs://a/b","url":"https://a.b/c"}}]}]}', "source[].url"],
  ["responses", '{"input":[{"content":[{"file_url":"https://a.b/c.pdf"}],"content":"x"}]}', "input[].content"],
  ["chat", '{"messages":[{"content":[{"input_audio":{"data":"file:///a","data":"AAAA"}}]}]}', "input_audio[].data"],
  ["chat", '{"prediction":{"content":[{"file_id":"f","file_id":null}]}}', "content[].file_id"],
  [
    "chat",
    '{"messages":[{"content":[{"document_url":"gs://a","document_url":"https://a.b"}]}]}',
    "content[].document_url",
  ],
  ["chat", '{"messages":[{"content":[{"images":["gs://a"],"images":["https://a.b"]}]}]}', "content[].images"],
];

test("a name that decides what is reached may not be duplicated or escaped", () => {
  for (const [protocol, text, param] of DOUBTED) {
    const body = Buffer.from(text);
    const scan = scanJson(body);
    assert.ok("members" in scan, text);
    const json = JSON.parse(text);
    const refused = refusedState({ protocol, body, json, scan, model: "m", stream: false });
    assert.deepEqual([refused?.cause, refused?.facts.param], ["duplicate_field", param], text);
  }
});

test("for a stateful upstream an id may not be duplicated or escaped", () => {
  const route = { upstream: "u", stateful: true };
  for (const [item, param] of [
    ['{"type":"reasoning","id":"rs_1","id":"x","summary":[]}', "input[].id"],
    ['{"type":"reasoning","id":"rs_1","id":null,"summary":[]}', "input[].id"],
    ['{"type":"reasoning","\\u0069d":"rs_1","summary":[]}', "input[].id"],
    ['{"type":"mcp_call","approval_request_id":"a","approval_request_id":null}', "input[].approval_request_id"],
  ] as const) {
    const text = `{"input":[${item}]}`;
    const body = Buffer.from(text);
    const scan = scanJson(body);
    assert.ok("members" in scan);
    const request = { protocol: "responses", body, json: JSON.parse(text), scan, model: "m", stream: false } as const;
    assert.equal(refusedState(request, route)?.facts.param, param, item);
  }
});

test("state in a list is found like state in an object", () => {
  const { diagnostics, prompt_cache_options } = {
    diagnostics: { previous_message_id: "msg_1" },
    prompt_cache_options: { comparison_response_id: "resp_1" },
  };
  const messages: JsonObject[] = [];
  assert.equal(placeIn("messages", { messages, diagnostics }), "diagnostics.previous_message_id");
  assert.equal(
    placeIn("messages", { messages, diagnostics: [null, diagnostics] }),
    "diagnostics[1].previous_message_id",
  );
  assert.equal(
    placeIn("responses", { prompt_cache_options: [prompt_cache_options] }),
    "prompt_cache_options[0].comparison_response_id",
  );
});

test("a tool that a tool change adds is checked like any other", () => {
  for (const tool of [{ tool: { file_ids: ["f"] } }, { tool: { definition: { container: { file_ids: ["f"] } } } }]) {
    const found = placeIn("messages", { messages: [{ content: [{ type: "tool_addition", tool_changes: [tool] }] }] });
    assert.match(found ?? "", /^messages\[0\]\.content\[0\]\.tool_changes\[0\]\.tool\..*file_ids$/);
  }
});

test("an item inside a nested list is refused, and stored skills are named", () => {
  const call = { type: "code_interpreter_call", container_id: "cntr_1" };
  assert.equal(placeIn("responses", { input: [{ role: "user", content: "a" }, [call]] }), "input[1]");
  for (const skill of ["s", { skill_id: "s" }, { id: "s" }, { source: { file_id: "f" } }, [{ skill_id: "s" }]]) {
    const environment = { type: "local", skills: [{ name: "mine", path: "/p" }, skill] };
    const item = { type: "shell_call", environment };
    assert.equal(placeIn("responses", { input: [item] }), "input[0].environment.skills[1]", JSON.stringify(skill));
  }
  const made = { type: "code_interpreter_call", container: { type: "auto", container_id: "cntr_1" } };
  assert.equal(placeIn("responses", { input: [made] }), "input[0].container.container_id");
  const skills = { skill_id: "s" };
  const tool = { type: "code_interpreter", container: { type: "auto", skills } };
  assert.equal(placeIn("responses", { tools: [tool] }), "tools[0].container.skills[0]");
  assert.equal(placeIn("responses", { tools: [{ type: "mcp", tunnel_id: "t" }] }), "tools[0].tunnel_id");
});
