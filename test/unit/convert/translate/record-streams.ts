/** Records the streams of `stream-cases.ts` from the simulated upstream: `node test/unit/convert/translate/record-streams.ts`. */
import { mkdirSync, writeFileSync } from "node:fs";
import { startSimulator } from "../../../../src/simulator/server.ts";
import { PROTOCOL_NAMES, PROTOCOLS } from "../../../../src/values/protocol.ts";
import { smallBody } from "./rig.ts";
import { behaviorOf, CASE_NAMES, STREAMS } from "./stream-cases.ts";

const simulator = await startSimulator();
try {
  for (const upstream of PROTOCOL_NAMES) {
    const folder = new URL(`${upstream}/`, STREAMS);
    mkdirSync(folder, { recursive: true });
    for (const name of CASE_NAMES) {
      const behavior = behaviorOf(name, upstream);
      if (!behavior) continue;
      simulator.program(behavior);
      const usage = upstream === "chat" ? { stream_options: { include_usage: true } } : {};
      const reply = await fetch(simulator.url + PROTOCOLS[upstream].upstreamPath, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify(smallBody(upstream, { stream: true, ...usage })),
      });
      writeFileSync(new URL(`${name}.sse`, folder), Buffer.from(await reply.arrayBuffer()));
    }
  }
} finally {
  await simulator.close();
}
