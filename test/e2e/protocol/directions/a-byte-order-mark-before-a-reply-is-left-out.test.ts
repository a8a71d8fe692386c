/**
 * Some servers begin their bodies with U+FEFF. A JSON parser may ignore it (RFC 8259 section 8.1), and a reader of an
 * event stream must (HTML section 9.2.6), but not every client does.
 */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import test, { after, before } from "node:test";
import type { Protocol } from "../../../../src/values/protocol.ts";
import { type GatewayHere, startGatewayHere } from "../../../rig/gateway.ts";
import { framesOf } from "../whole/asking.ts";
import { askFor, DIRECTIONS, directionsConfig, type Json, post, recordOf } from "./rig.ts";

const BOM = Buffer.from("\ufeff");

let here: GatewayHere;
let marking: Server;
/** The simulator's address. */
let origin = "";
/** How the answers that the gateway gets are written. */
let form: "one piece" | "single bytes" | "an object in place of a stream" = "one piece";

before(async () => {
  marking = createServer(async (req, res) => {
    const pieces: Buffer[] = [];
    for await (const piece of req) pieces.push(piece as Buffer);
    const asked = JSON.parse(Buffer.concat(pieces).toString()) as Json;
    const body = JSON.stringify({
      ...asked,
      stream: asked.stream === true && form !== "an object in place of a stream",
    });
    const headers = { "content-type": "application/json" };
    const reply = await fetch(new URL(req.url ?? "", origin), { method: "POST", headers, body });
    const bytes = Buffer.concat([BOM, Buffer.from(await reply.arrayBuffer())]);
    res.writeHead(reply.status, { "content-type": reply.headers.get("content-type") ?? "" });
    if (form === "single bytes") {
      for (const byte of bytes.subarray(0, 8)) {
        res.write(Buffer.of(byte));
        await new Promise(setImmediate);
      }
      res.end(bytes.subarray(8));
    } else res.end(bytes);
  });
  marking.listen(0, "127.0.0.1");
  await once(marking, "listening");
  const url = `http://127.0.0.1:${(marking.address() as AddressInfo).port}/v1`;
  here = await startGatewayHere({ config: (places) => directionsConfig()({ ...places, upstreamUrl: url }) });
  origin = here.simulator.url;
});

after(async () => {
  await here.close();
  marking.close();
});

const FORMS = ["one piece", "single bytes", "an object in place of a stream"] as const;

for (const direction of DIRECTIONS) {
  const { client, upstream } = direction;
  test(`${client} client, ${upstream} upstream: a whole reply after a byte order mark is an answer without it`, async () => {
    const { key } = await here.account();
    form = "one piece";
    here.simulator.program({ text: "hello there" });
    const reply = await post(here, client, key, askFor(direction));
    const body = Buffer.from(await reply.arrayBuffer());
    assert.equal(reply.status, 200, body.toString());
    assert.equal(body.toString()[0], "{");
    assert.match(body.toString(), /hello there/);
  });

  for (const how of FORMS) {
    test(`${client} client, ${upstream} upstream: a stream after a byte order mark, ${how}, is complete without it`, async () => {
      const { key } = await here.account();
      form = how;
      here.simulator.program({ text: "hello there" });
      const reply = await post(here, client, key, askFor(direction, { stream: true }));
      const bytes = Buffer.from(await reply.arrayBuffer());
      assert.equal(reply.status, 200, bytes.toString());
      assert.notEqual(bytes[0], BOM[0]);
      assert.equal(textOf(client, bytes.toString()), "hello there");
    });
  }

  test(`${client} client, ${upstream} upstream: a refusal after a byte order mark keeps its words`, async () => {
    const { key } = await here.account();
    form = "one piece";
    here.simulator.program({ fault: { status: 400, message: "the seventh word is missing" } });
    const reply = await post(here, client, key, askFor(direction));
    assert.equal(reply.status, 400);
    assert.equal(recordOf(((await reply.json()) as Json).error).message, "the seventh word is missing");
  });
}

/** The text of a stream's deltas; fails if the stream has not ended properly. */
function textOf(client: Protocol, stream: string): string {
  const frames = framesOf(stream).map(({ data }) => data);
  const ends = { chat: /^\[DONE\]$/, messages: /"message_stop"/, responses: /"response\.completed"/ };
  assert.match(frames.at(-1) ?? "", ends[client]);
  let text = "";
  for (const data of frames.filter((one) => one.startsWith("{"))) {
    const event = JSON.parse(data);
    if (client === "chat") text += event.choices?.[0]?.delta?.content ?? "";
    else if (client === "messages") text += event.delta?.text ?? "";
    else if (event.type === "response.output_text.delta") text += event.delta;
  }
  return text;
}
