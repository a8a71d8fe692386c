/**
 * A client for long commands: a store that does not answer for a moment must not undo the work of many minutes. What only
 * reads, or counts once however often it is sent, is asked again for a while.
 */
import type { AdminClient } from "./admin-client.ts";
import { CliFailure } from "./failure.ts";
import type { Terminal } from "./terminal.ts";

/** How long a store may not answer. */
const PATIENCE_MS = 60_000;
const PAUSE_MS = 1_000;

/** @returns the same client; every call of it is one that may be sent again. */
export function patientClient(admin: AdminClient, terminal: Terminal): AdminClient {
  return {
    async call(method, path, body) {
      for (let waitedMs = 0; ; waitedMs += PAUSE_MS) {
        try {
          return await admin.call(method, path, body);
        } catch (error) {
          if (!(error instanceof CliFailure) || error.code !== "store_unavailable") throw error;
          if (waitedMs >= PATIENCE_MS) throw new CliFailure(1, givenUp(error));
          if (waitedMs === 0) terminal.note("The store does not answer; trying again for up to a minute.");
          terminal.progress(`Waiting for the store: ${waitedMs / 1_000} s`);
          await terminal.wait(PAUSE_MS);
        }
      }
    },
  };
}

function givenUp({ message }: CliFailure): string {
  return `${message}\nIt did not answer for ${PATIENCE_MS / 1_000} seconds.`;
}
