/** `tollgate --version`: the version of this program; as JSON, also that of the gateway at the admin address. */

import type { JsonObject } from "../values/json-object.ts";
import { BUILD } from "../values/program/program.ts";
import { connectAdmin, type GatewayPlace } from "./admin-client.ts";
import { CliFailure } from "./failure.ts";

/**
 * The text to print. In JSON, `running` is the gateway's version, build and configuration generation. It is null if no
 * gateway answers or the token is wrong.
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
