/** `tollgate health`: whether a gateway is alive, as an image without a shell asks it. No token is needed. */
import { adminAddress } from "./admin-address.ts";
import { type GatewayPlace, unreachable } from "./admin-client.ts";
import type { CommandResult } from "./admin-commands.ts";
import { CliFailure } from "./failure.ts";

const TIMEOUT_MS = 3_000;

/**
 * Asks `/healthz` of the admin address.
 * @throws CliFailure 1 when there is no good answer
 */
export async function askHealth(place: GatewayPlace): Promise<CommandResult> {
  const { name, base, fetch: ask } = adminAddress(place);
  let status: number;
  try {
    const answer = await ask(`${base}/healthz`, { redirect: "error", signal: AbortSignal.timeout(TIMEOUT_MS) });
    status = answer.status;
    await answer.arrayBuffer();
  } catch (error) {
    throw unreachable(name, error, false);
  }
  if (status !== 200) throw new CliFailure(1, `${name}/healthz answers ${status}.`);
  return { json: { alive: true }, text: "alive\n" };
}
