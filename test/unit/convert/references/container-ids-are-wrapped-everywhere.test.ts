/**
 * docs/decisions/stateful-upstreams-get-wrapped-ids.md: ids of containers are wrapped where a server names a container,
 * and nowhere else.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { withWrappedContainers } from "../../../../src/convert/responses/stored/containers.ts";
import { wrappingContainers, wrappingStored } from "../../../../src/convert/responses/stored/reply.ts";
import { WrappedIds } from "../../../../src/convert/responses/stored/stored.ts";
import { OWN } from "./rig.ts";

const IDS = new WrappedIds({ upstream: "east", model: "big-1" }, OWN);
const RAW = "cntr_1";
const MADE = IDS.of(RAW) as string;
const NAMING = { container_id: RAW };
const SHELL = { type: "shell_call", environment: { type: "container_reference", ...NAMING } };
const KEPT = "cntr_kept";

/** What a server sends. `KEPT` marks the ids in a client's own data or in a citation, which are not wrapped. */
const SAID: readonly (readonly [string, object])[] = [
  [
    "a response",
    {
      output: [NAMING, SHELL, { content: [{ annotations: [{ container_id: KEPT }] }] }],
      metadata: { container_id: KEPT },
    },
  ],
  ["a page of items", { data: [{ tools: [{ parameters: { default: { container_id: KEPT } } }] }, SHELL, NAMING] }],
  [
    "the end of a stream",
    { type: "response.completed", response: { output: [NAMING], metadata: { container_id: KEPT } } },
  ],
  ["an item", { type: "response.output_item.added", item: { type: "code_interpreter_call", ...NAMING } }],
  ["a shell's", { type: "response.output_item.done", output_index: 1, item: SHELL }],
  ["a citation", { type: "response.output_text.annotation.added", annotation: { container_id: KEPT } }],
];

for (const [name, said] of SAID) {
  test(`${name}: the container ids change, and no other byte`, () => {
    for (const blank of [0, 2]) {
      const text = JSON.stringify(said, undefined, blank);
      const wanted = text.replaceAll(`"${RAW}"`, `"${MADE}"`);
      assert.equal(Buffer.from(withWrappedContainers(Buffer.from(text), IDS)).toString(), wanted);
      if (!("type" in said)) continue;
      for (const wrapping of [wrappingContainers, wrappingStored]) {
        const event = {
          raw: Buffer.from(`data: ${text.replaceAll("\n", "\ndata: ")}\n\n`),
          event: "e",
          data: Buffer.from(text),
        };
        const shown = wrapping(IDS)(event);
        if (wanted === text) {
          assert.equal(shown, event);
          continue;
        }
        assert.deepEqual(JSON.parse(Buffer.from(shown.data ?? []).toString()), JSON.parse(wanted));
        // wrappingStored also wraps the ids of the listed items, which removes the blanks between the items.
        if (wrapping === wrappingStored && blank > 0) continue;
        assert.equal(Buffer.from(shown.raw).toString(), `event: e\ndata: ${wanted.replaceAll("\n", " ")}\n\n`);
      }
    }
  });
}

test("text that looks like an id, ids that cannot be wrapped and bodies without an id keep their bytes", () => {
  for (const output of [
    [{ text: '"container_id":"cntr_1"' }],
    [{ container_id: "not an id" }, { container_id: "" }, { container_id: 7 }, { container_id: null }],
    [{ container: RAW, container_ids: [RAW] }],
    [],
  ]) {
    const body = Buffer.from(JSON.stringify({ output, metadata: NAMING }));
    assert.equal(withWrappedContainers(body, IDS), body);
    const event = { raw: body, event: "", data: body };
    assert.equal(wrappingContainers(IDS)(event), event);
  }
});
