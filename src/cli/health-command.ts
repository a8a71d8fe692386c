/** `tollgate health`: whether a gateway is alive, for images without a shell. It needs no token. */
import { adminAddress } from "./admin-address.ts";
import { type GatewayPlace, unreachable } from "./admin-client.ts";
import type { CommandResult } from "./admin-commands.ts";
import { CliFailure } from "./failure.ts";

const TIMEOUT_MS = 3_000;

/**
 * Requests `/healthz` at the admin address.
 * @throws CliFailure 1 if there is no answer, or one other than 200
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
