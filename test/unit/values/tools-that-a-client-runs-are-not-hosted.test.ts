/**
 * What a client's own program runs costs nothing except tokens: only what the server runs is a hosted tool, which must have a
 * price (ARCHITECTURE.md promise 14).
 */
import assert from "node:assert/strict";
import test from "node:test";
import { hostedType } from "../../../src/values/members/hosted-tools.ts";
import type { Protocol } from "../../../src/values/protocol.ts";

const OWN: Readonly<Record<Protocol, readonly object[]>> = {
  chat: [{ type: "function" }, { type: "custom" }, { name: "f" }, { type: null }],
  messages: [
    { name: "f", input_schema: {} },
    { type: "custom" },
    { type: "bash_20250124" },
    { type: "text_editor_20250728" },
    { type: "memory_20250818" },
    { type: "computer_20251124" },
    { type: "computer_toolset_20260101" },
    { type: "browser_toolset_20260101" },
    { type: "tool_search_tool_bm25" },
    { type: "tool_search_tool_regex_20251119" },
  ],
  responses: [
    { type: "function" },
    { type: "custom" },
    { type: "namespace" },
    { type: "local_shell" },
    { type: "apply_patch" },
    { type: "tool_search", execution: "client" },
    { type: "shell" },
    { type: "shell", environment: null },
    { type: "shell", environment: { type: "local" } },
  ],
};

const HOSTED: Readonly<Record<Protocol, readonly { readonly type: unknown }[]>> = {
  chat: [{ type: "web_search" }, { type: "functions" }],
  messages: [{ type: "web_search_20250305" }, { type: "bash" }, { type: "code_execution_20250825" }],
  responses: [
    { type: "web_search" },
    { type: "tool_search" },
    { type: "tool_search", execution: "server" } as { type: string },
    { type: "shell", environment: { type: "container_auto" } } as { type: string },
    { type: "computer_use_preview" },
  ],
};

for (const protocol of ["chat", "messages", "responses"] as const) {
  test(`${protocol}: tools of the client are not hosted`, () => {
    for (const tool of OWN[protocol]) {
      assert.equal(hostedType(protocol, tool as Readonly<Record<string, unknown>>), undefined, JSON.stringify(tool));
    }
  });

  test(`${protocol}: every other tool is hosted under its type`, () => {
    for (const tool of HOSTED[protocol]) assert.equal(hostedType(protocol, tool), tool.type, JSON.stringify(tool));
    assert.equal(hostedType(protocol, { type: 7 }), "unknown");
  });
}
