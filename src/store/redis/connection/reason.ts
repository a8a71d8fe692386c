/** Explains to an operator why a connection to Redis was lost or cannot be made. */

/** What ioredis adds to an error. */
export interface ConnectionFailure extends NodeJS.ErrnoException {
  /** The command that a server refused. */
  readonly command?: { readonly name: string };
  /** For a cluster: why the last node that was asked did not return the slot map. */
  readonly lastNodeError?: Error | null;
}

/** Why there is no connection, with a hint where to look. */
export function reasonOf(error: ConnectionFailure, { tls }: { readonly tls?: unknown }): string {
  const { message, lastNodeError, code } = error;
  if (lastNodeError) return `${message} ${reasonOf(lastNodeError, { tls })}`;
  // Such a server takes our TLS greeting for the beginning of a command and waits for the rest.
  if (tls && (code === "ETIMEDOUT" || message === "timeout"))
    return `${message}; a server that does not speak TLS never answers`;
  return message.replace(SENTINELS_TRIED_AGAIN, "");
}

/** ioredis includes its waiting time, a different number each time, so the same reason would be logged as a new one. */
const SENTINELS_TRIED_AGAIN = /Retrying from scratch after [\d.]+ms\. /;
