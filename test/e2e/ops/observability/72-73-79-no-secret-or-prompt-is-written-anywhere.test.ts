/**
 * docs/failure-model.md rows 72, 73, 79: canaries for a client's key, a prompt, an answer, an upstream's credential,
 * the admin token, a sealing key and a code pass through successes, refusals, faults, cuts and a defect. Then
 * everything that the gateway writes is searched for them: the log at its lowest level, metrics in both forms, exported
 * spans, the store's dump, the journal, a diagnostic report, and the answers to clients.
 */
import assert from "node:assert/strict";
import { globSync, readFileSync, statSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import test, { type TestContext } from "node:test";
import { type GatewayHere, startGatewayHere, testConfig } from "../../../rig/gateway.ts";
import { startRedis, type TestRedis } from "../../../rig/redis.ts";
import { PATIENT } from "../../../unit/store/benches.ts";
import { ask, PROTOCOL_LIST } from "../../protocol/whole/asking.ts";

const PROMPT = "prompt-canary-7f3a9c";
const ANSWER = "answer-canary-52bd01";
/** As the test configuration has them. */
const CONFIGURED = ["upstream-canary-", "test-admin-token", "test-sealing-key-of-32"];

/** Receives OTLP and keeps the bytes: strings are unencoded in protobuf. */
async function spanSink(t: TestContext): Promise<{ url: string; bytes: Buffer[] }> {
  const bytes: Buffer[] = [];
  const sink = createServer(async (request, response) => {
    bytes.push(await buffer(request));
    response.end();
  });
  await new Promise<void>((resolve) => sink.listen(0, "127.0.0.1", resolve));
  t.after(() => sink.close());
  return { url: `http://127.0.0.1:${(sink.address() as AddressInfo).port}/v1/traces`, bytes };
}

/** Everything that Redis would write to its disk, uncompressed. */
async function dumpOf(redis: TestRedis): Promise<Buffer> {
  const setting = async (name: string) => (await redis.command("CONFIG", "GET", name)).split("\r\n")[4] ?? "";
  await redis.command("CONFIG", "SET", "rdbcompression", "no");
  await redis.command("SAVE");
  return readFileSync(join(await setting("dir"), await setting("dbfilename")));
}

async function traffic(here: GatewayHere, key: string): Promise<string[]> {
  const answers: string[] = [];
  const say = { chat: "messages", messages: "messages", responses: "input" } as const;
  for (const protocol of PROTOCOL_LIST) {
    const content = [{ role: "user", content: `${PROMPT} hello` }];
    const send = async (fields: object, withKey: string | undefined = key): Promise<void> => {
      const reply = await ask(here, protocol, withKey, { [say[protocol]]: content, ...fields });
      const body = await reply.text().catch(() => "");
      // Answers contain the client's own text, so only the gateway's refusals are searched.
      if (reply.status !== 200) answers.push(JSON.stringify([...reply.headers]), body);
    };
    for (const stream of [false, true]) {
      here.simulator.program({ text: ANSWER });
      await send({ stream });
      here.simulator.program({ text: ANSWER }, { times: 1 });
      await send({ stream, model: protocol === "chat" ? "messages-1" : "chat-1" });
      for (const fault of [
        { status: 500, body: `upstream says ${PROMPT} upstream-canary-${protocol}` },
        { status: 401, body: `bad key upstream-canary-${protocol}` },
        { status: 429, body: "slow down", retryAfter: 1 },
        { resetAfterEvents: 3 },
        { html: true },
        { garbageAfterEvents: 2 },
      ]) {
        here.simulator.program({ text: ANSWER, fault }, { times: 2 });
        await send({ stream });
        here.simulator.clearPrograms();
      }
    }
    await send({ model: `no-such-${protocol}` });
    await send({ temperature: "hot", [say[protocol]]: 7 });
    await send(
      {},
      key.replace(/.$/, (last) => (last === "x" ? "y" : "x")),
    );
    await ask(here, protocol, undefined, {}, { path: `/v1/messages?api_key=${key}` }).then((reply) => reply.text());
    const leaving = new AbortController();
    here.simulator.program({ text: ANSWER, fault: { stallAfterEvents: 4 } });
    const reply = await ask(
      here,
      protocol,
      key,
      { stream: true, [say[protocol]]: content },
      { signal: leaving.signal },
    );
    await reply.body?.getReader().read();
    leaving.abort();
    await here.requestEnd(reply.headers.get("x-request-id") ?? "");
  }
  return answers;
}

test("rows 72, 73, 79: nothing that is written contains a key, a prompt, an answer or a credential", async (t) => {
  const redis = await startRedis();
  t.after(() => redis.stop());
  const sink = await spanSink(t);
  const traces = `traces: {endpoint: "${sink.url}", sample: 1, headers: {authorization: upstream-canary-collector}}\n`;
  const here = await startGatewayHere({
    store: redis.url,
    storeTimes: PATIENT,
    config: (places) => testConfig(places) + traces,
  });
  let closed = false;
  t.after(async () => {
    if (!closed) await here.close();
  });
  const { key, name } = await here.account();
  const admin = (method: string, path: string, body?: object) =>
    fetch(`${here.adminUrl}/admin/v1${path}`, {
      method,
      headers: { authorization: "Bearer test-admin-token", "content-type": "application/json" },
      ...(body ? { body: JSON.stringify(body) } : {}),
    });
  const made = await admin("POST", "/codes", { card: "day", count: 1 });
  const { items } = (await made.json()) as { items: { code: string }[] };
  const code = items[0]?.code ?? "";
  assert.ok(code.length >= 16, "a code was created");
  await admin("POST", `/accounts/${name}/redemptions`, { code });

  const answers = await traffic(here, key);
  const metrics = await (await fetch(`${here.adminUrl}/metrics`)).text();
  const open = await fetch(`${here.adminUrl}/metrics`, { headers: { accept: "application/openmetrics-text" } });
  const journal = globSync(`${here.settings.journal.dir}/**`).filter((file) => statSync(file).size > 0);
  const written: [string, string][] = [
    ["log", JSON.stringify(here.log)],
    ["metrics", metrics],
    ["metrics, OpenMetrics", await open.text()],
    ["store", (await dumpOf(redis)).toString("latin1")],
    [
      "journal",
      journal
        .filter((file) => statSync(file).isFile())
        .map((file) => readFileSync(file, "latin1"))
        .join(),
    ],
    ["report", JSON.stringify((process.report.getReport() as { javascriptStack?: object }).javascriptStack)],
    ["answers", answers.join("\n")],
  ];
  await here.close();
  closed = true;
  written.push(["spans", Buffer.concat(sink.bytes).toString("latin1")]);
  assert.ok(sink.bytes.length > 0, "spans were exported");

  const secret = key.slice(13);
  const canaries = [key, secret, PROMPT, ANSWER, code, code.replaceAll("-", ""), ...CONFIGURED];
  for (const [where, text] of written) {
    assert.ok(text.length > 0, `${where} was searched`);
    for (const canary of canaries) assert.ok(!text.includes(canary), `${canary.slice(0, 8)}… in ${where}`);
  }
});
