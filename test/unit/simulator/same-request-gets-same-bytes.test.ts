import assert from "node:assert/strict";
import test from "node:test";
import type { Behavior } from "../../../src/simulator/server.ts";
import { PROTOCOL_NAMES, post, streamText, withSimulator } from "./clients.ts";

const RICH: Behavior = {
  text: "Grüße 👋",
  thinking: "hm 🤔",
  tools: [{ name: "f", arguments: { ä: "ö" } }],
  obfuscation: true,
};

for (const protocol of PROTOCOL_NAMES) {
  test(`${protocol}: two servers give the same reply, whole and streamed`, async () => {
    const replies: string[] = [];
    for (const _ of [1, 2]) {
      await withSimulator(async (simulator) => {
        replies.push(await streamText(simulator, protocol, RICH), await (await post(simulator, protocol)).text());
      });
    }
    assert.equal(replies[0], replies[2]);
    assert.equal(replies[1], replies[3]);
  });

  test(`${protocol}: the bytes are the same for any chunk size`, () =>
    withSimulator(async (simulator) => {
      const expected = await streamText(simulator, protocol, RICH);
      for (const chunkBytes of [1, 3, 7, 1000]) {
        assert.equal(await streamText(simulator, protocol, { ...RICH, chunkBytes }), expected);
      }
    }));

  test(`${protocol}: the reader gets chunks of the given size`, () =>
    withSimulator(async (simulator) => {
      simulator.program({ ...RICH, chunkBytes: 5 });
      const response = await post(simulator, protocol, { stream: true });
      assert.ok(response.body);
      let pieces = 0;
      let bytes = 0;
      for await (const piece of response.body) {
        pieces += 1;
        bytes += piece.length;
      }
      assert.ok(pieces > bytes / 50, `${bytes} bytes came in ${pieces} pieces`);
    }));

  for (const lineEnd of ["\r\n", "\r"] as const) {
    test(`${protocol}: lines end in ${JSON.stringify(lineEnd)} if the behavior says so`, () =>
      withSimulator(async (simulator) => {
        const expected = await streamText(simulator, protocol, RICH);
        const other = await streamText(simulator, protocol, { ...RICH, lineEnd });
        assert.equal(other, expected.replaceAll("\n", lineEnd));
      }));
  }
}

test("with unique ids, equal requests get different ids", () =>
  withSimulator(
    async (simulator) => {
      const first = (await (await post(simulator, "chat")).json()) as { id: string };
      const second = (await (await post(simulator, "chat")).json()) as { id: string };
      assert.notEqual(first.id, second.id);
    },
    { uniqueIds: true },
  ));
