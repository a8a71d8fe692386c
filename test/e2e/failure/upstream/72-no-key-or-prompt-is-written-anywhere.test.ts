/**
 * docs/failure-model.md row 72, invariants 17 and 18: keys and prompts are in no log, metric, journal, database or
 * answer of the admin API.
 */
import assert from "node:assert/strict";
import { globSync, readFileSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import test from "node:test";
import { startGatewayHere } from "../../../rig/gateway.ts";
import { RawSocket } from "../../../rig/raw-socket.ts";
import { ask, assertAtRest, PROTOCOL_LIST } from "../../protocol/whole/asking.ts";
import { requestBytes } from "./rig.ts";

const PROMPT = "canary-prompt-5f1c9d";
const ANSWER = "canary-answer-77ab02";

test("successes, refusals, failures and disconnects leave no key and no prompt in anything that is written", async () => {
  const here = await startGatewayHere();
  try {
    const account = await here.account();
    const conversation = (protocol: string) =>
      protocol === "responses" ? { input: PROMPT } : { messages: [{ role: "user", content: PROMPT }] };
    for (const protocol of PROTOCOL_LIST) {
      const send = async (fields: object, key: string | undefined = account.key) =>
        (await ask(here, protocol, key, { ...conversation(protocol), ...fields })).text();
      for (const stream of [false, true]) {
        here.simulator.program({ text: `${ANSWER} `.repeat(5), deltaChars: 40 });
        assert.ok((await send({ stream })).includes(ANSWER));
        for (const status of [400, 401, 429, 500]) {
          const message = `no: ${PROMPT} with upstream-canary-${protocol}`;
          here.simulator.program({ fault: { status, message } }, { times: 2 });
          await send({ stream });
          here.simulator.clearPrograms();
        }
        here.simulator.program({
          text: `${ANSWER} `.repeat(9),
          fault: { garbageAfterEvents: { n: 4, text: `${ANSWER}\n\n` } },
        });
        await send({ stream });
        here.simulator.clearPrograms();
      }
      await send({ model: PROMPT });
      await send({ [PROMPT]: "not a field" });
      await send({ temperature: PROMPT });
      await send({}, `${account.key}x`);
      await ask(here, protocol, account.key, {}, { raw: `{"model":"${PROMPT}` });
      here.simulator.program({ text: `${ANSWER} `.repeat(40), deltaChars: 40, fault: { stallAfterEvents: 8 } });
      const bytes = requestBytes(protocol, account.key, { stream: true, ...conversation(protocol) });
      const leaving = new RawSocket({ port: here.port }).send(bytes);
      await leaving.until((text) => text.includes("canary-answer"));
      const id = /x-request-id: (\S+)/i.exec(leaving.text)?.[1];
      leaving.close(true);
      await here.requestEnd(String(id));
      here.simulator.clearPrograms();
    }
    await assertAtRest(here, account);
    // A model name appears in logs and errors as it was typed, but not as a label or in the ledger.
    const log = JSON.stringify(here.log.map((line) => ({ ...line, model: undefined })));
    const admin = { headers: { authorization: "Bearer test-admin-token" } };
    const shown = ["", "/ledger", "/keys"].map((path) => `/admin/v1/accounts/${account.name}${path}`);
    const pages = await Promise.all(
      [...shown, "/admin/v1/upstreams", "/metrics"].map(async (path) => {
        const reply = await fetch(here.adminUrl + path, admin);
        assert.equal(reply.status, 200, path);
        return [path, Buffer.from(await reply.arrayBuffer())] as const;
      }),
    );
    const dir = dirname(here.settings.journal.dir);
    const files = globSync(join(dir, "**/*")).filter((file) => statSync(file).isFile());
    assert.ok(files.some((file) => file.includes("journal")) && files.length > 2, files.join());
    const written = [
      ["the log", Buffer.from(log)] as const,
      ...pages,
      ...files.map((f) => [f, readFileSync(f)] as const),
    ];
    assert.ok(
      written.some(([, bytes]) => bytes.includes("up-chat")),
      "there is output to search",
    );
    for (const [where, bytes] of written) {
      for (const canary of [PROMPT, ANSWER, account.key, account.key.slice(14), "upstream-canary-"]) {
        assert.ok(!bytes.includes(canary), `${canary} is in ${where}`);
      }
    }
  } finally {
    await here.close();
  }
});
