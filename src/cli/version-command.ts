/** `tollgate --version`: which program this is, and as JSON also which one runs at the admin address. */

import type { JsonObject } from "../values/json-object.ts";
import { BUILD } from "../values/program/program.ts";
import { connectAdmin, type GatewayPlace } from "./admin-client.ts";
import { CliFailure } from "./failure.ts";

/**
 * The text to print. `running` of the JSON is the gateway's own version, build and configuration generation, and null
 * where none answers or it does not take the token: the question about this program is answered either way.
 */
export async function showVersion(place: GatewayPlace, { json }: { readonly json: boolean }): Promise<string> {
  if (!json) return `${BUILD.version}\n`;
  return `${JSON.stringify({ ...BUILD, node: process.versions.node, running: await runningAt(place) })}\n`;
}

async function runningAt(place: GatewayPlace): Promise<JsonObject | null> {
  try {
    return (await (await connectAdmin(place)).call("GET", "/version")).body;
  } catch (error) {
    if (error instanceof CliFailure) return null;
    throw error;
  }
}
