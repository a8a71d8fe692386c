/** docs/failure-model.md rows C11, 60 to 62 and 65 to 69, with client and upstream of the same protocol. */
import assert from "node:assert/strict";
import test, { after, afterEach, before } from "node:test";
import { type GatewayHere, startGatewayHere } from "../../../rig/gateway.ts";
import { workTimer } from "../../../rig/stopwatch.ts";
import { ask, assertAtRest, errorOf, framesOf, PROTOCOL_LIST } from "./asking.ts";

let here: GatewayHere;
before(async () => {
  here = await startGatewayHere();
});
afterEach(() => here.simulator.clearPrograms());
after(() => here.close());

for (const protocol of PROTOCOL_LIST) {
  test(`${protocol}: row 60, what identifies the upstream never reaches the client`, async () => {
    const account = await here.account();
    const canary = `upstream-canary-${protocol}`;
    const message = `prompt is too long; key ${canary}, Bearer ${canary}, org-canary123 at ${here.simulator.url}/x`;
    for (const status of [400, 401, 403, 413, 422, 429, 500, 529]) {
      for (const stream of [false, true]) {
        const headers = { "openai-organization": "org-canary123", "x-debug": canary };
        here.simulator.program({ fault: { status, message, headers } }, { times: 2 });
        const reply = await ask(here, protocol, account.key, { stream });
        here.simulator.clearPrograms();
        const told = JSON.stringify([...reply.headers]) + (await reply.clone().text());
        for (const secret of [canary, "org-canary123", here.simulator.url, String(here.simulator.port)]) {
          assert.ok(!told.includes(secret), `${status}: ${told}`);
        }
        // The text about a fault of the client is kept, because clients match on it.
        if ([400, 413, 422].includes(status)) {
          const error = await errorOf(reply);
          assert.match(error.message, /prompt is too long/);
          assert.deepEqual([reply.status, error.cause], [status === 413 ? 413 : 400, "upstream_rejected"]);
        }
        await assertAtRest(here, account);
      }
    }
    assert.ok(!JSON.stringify(here.log).includes(canary));
    assert.ok(!(await here.gateway.metrics.page()).body.includes(canary));
  });

  test(`${protocol}: rows 61 and 62, an upstream's headers do not reach the client`, async () => {
    const account = await here.account();
    const extraHeaders = {
      "set-cookie": "a=b",
      server: "evil",
      "x-accel-redirect": "/protected/x",
      "x-sendfile": "/etc/passwd",
      location: "http://evil",
      "alt-svc": 'h3=":443"',
      "access-control-allow-origin": "*",
      "x-ratelimit-limit-requests": "7",
      "anthropic-ratelimit-requests-limit": "7",
      "openai-organization": "org-x",
      "x-billing": "1",
      "x-request-id": "req_theirs",
    };
    for (const stream of [false, true]) {
      here.simulator.program({ fault: { extraHeaders } });
      const reply = await ask(here, protocol, account.key, { stream });
      assert.equal(reply.status, 200);
      await reply.text();
      for (const name of Object.keys(extraHeaders)) {
        if (name !== "x-request-id") assert.equal(reply.headers.get(name), null, name);
      }
      assert.notEqual(reply.headers.get("x-request-id"), "req_theirs");
      await assertAtRest(here, account);
    }
  });

  test(`${protocol}: row 65, floods of events take linear time and no charge is missing`, async () => {
    const account = await here.account();
    const worked = workTimer();
    here.simulator.program({ fault: { emptyEvents: 200_000 } });
    const flooded = await ask(here, protocol, account.key, { stream: true });
    await flooded.text();
    here.simulator.program({ fault: { hugeEvent: 10 * 1024 * 1024 } });
    const huge = await ask(here, protocol, account.key, { stream: true });
    assert.ok((await huge.text()).length < 2 * 1024 * 1024, "an event over the limit is not passed on");
    assert.ok(worked() < 8_000);
    await assertAtRest(here, account);
  });

  test(`${protocol}: rows 65 to 67, any line ending and any cut give the same text, and text cannot forge an event`, async () => {
    const account = await here.account();
    const text =
      'h\u00e9llo \u4f60\u597d \ud83d\ude00 \n\ndata: [DONE]\n\nevent: error\ndata: {} </script> "quoted" \u2028 end';
    const read = async () => {
      const reply = await ask(here, protocol, account.key, { stream: true });
      const received = await reply.text();
      await assertAtRest(here, account);
      return received;
    };
    here.simulator.program({ text });
    const whole = await read();
    assert.equal(textOf(protocol, whole), text);
    for (const lineEnd of ["\n", "\r\n", "\r"] as const) {
      for (const chunkBytes of [1, 2, 3, 7]) {
        here.simulator.program({ text, lineEnd, chunkBytes });
        const cut = await read();
        const normal = cut.replaceAll("\r\n", "\n").replaceAll("\r", "\n");
        assert.equal(normal, whole, `${JSON.stringify(lineEnd)} in pieces of ${chunkBytes}`);
      }
    }
  });

  test(`${protocol}: row 68, arguments that are not JSON and very many calls pass as text in linear time`, async () => {
    const account = await here.account();
    const broken = '{"a": [1, 2, "unfinished';
    const tools = Array.from({ length: 2_000 }, () => ({ name: "f", arguments: broken }));
    const worked = workTimer();
    here.simulator.program({ tools, ignoreLimit: true });
    const reply = await ask(here, protocol, account.key, { stream: true });
    const received = await reply.text();
    assert.equal(reply.status, 200);
    assert.ok(received.includes("unfinished"));
    assert.ok(worked() < 10_000);
    await assertAtRest(here, account);
  });

  test(`${protocol}: row 69, a redirect is not followed`, async () => {
    const account = await here.account();
    const before = here.simulator.count;
    here.simulator.program(
      { fault: { status: 302, headers: { location: `${here.simulator.url}/models` } } },
      { times: 2 },
    );
    const reply = await ask(here, protocol, account.key);
    assert.deepEqual([reply.status, (await errorOf(reply)).cause], [403, "upstream_unavailable"]);
    for (const seen of here.simulator.requests.slice(before)) assert.notEqual(seen.path, "/v1/models");
    await assertAtRest(here, account);
  });
}

/** The text that a client of the protocol would assemble. */
function textOf(protocol: string, stream: string): string {
  let text = "";
  for (const { data } of framesOf(stream)) {
    if (!data.startsWith("{")) continue;
    const payload = JSON.parse(data) as {
      type?: string;
      delta?: string | { text?: string };
      choices?: { delta?: { content?: string } }[];
    };
    if (protocol === "chat") text += payload.choices?.[0]?.delta?.content ?? "";
    else if (protocol === "messages") text += (payload.delta as { text?: string } | undefined)?.text ?? "";
    else if (payload.type === "response.output_text.delta") text += payload.delta as string;
  }
  return text;
}
