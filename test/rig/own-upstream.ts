/** A gateway whose upstreams are a server of the test, for answers that the simulator does not give. */
import { once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import type { TestContext } from "node:test";
import { type ConfigPlaces, testConfig } from "./config.ts";
import { type GatewayHere, startGatewayHere } from "./gateway.ts";

/** Changes of a configuration: the upstream of the responses protocol keeps its answers. */
export const KEEPING = { upstreams: { "up-responses": { stateful: true } } };

type Options = NonNullable<Parameters<typeof startGatewayHere>[0]>;

/**
 * Starts a server, and a gateway that sends it all requests. When the test ends both are closed, the gateway first.
 * @param answers gets every request of the gateway, and must read its body or discard it (`request.resume()`).
 * @param options as of `startGatewayHere`; by default the upstream of the responses protocol keeps its answers.
 */
export async function startBefore(
  t: TestContext,
  answers: RequestListener,
  options: Options = {},
): Promise<GatewayHere> {
  const server = createServer(answers).listen(0, "127.0.0.1");
  await once(server, "listening");
  const upstreamUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
  const { config = (places: ConfigPlaces) => testConfig(places, KEEPING) } = options;
  const here = await startGatewayHere({ ...options, config: (places) => config({ ...places, upstreamUrl }) });
  t.after(async () => {
    await here.close();
    server.closeAllConnections();
    server.close();
  });
  return here;
}

/** One event of a stream of the responses protocol. */
export function event(payload: { readonly type: string; readonly [member: string]: unknown }): string {
  return `event: ${payload.type}\ndata: ${JSON.stringify(payload)}\n\n`;
}
