/** Why a connection to Redis was lost or cannot be made, as it is told to an operator. */

/** What ioredis adds to an error. */
export interface ConnectionFailure extends NodeJS.ErrnoException {
  /** The command that a server has refused. */
  readonly command?: { readonly name: string };
  /** Of a cluster: why the last node that was asked gave no map of it. */
  readonly lastNodeError?: Error | null;
}

/** Why there is no connection, in words that say where to look. */
export function reasonOf(error: ConnectionFailure, { tls }: { readonly tls?: unknown }): string {
  const { message, lastNodeError, code } = error;
  if (lastNodeError) return `${message} ${reasonOf(lastNodeError, { tls })}`;
  // It takes what we greet it with for the beginning of a command, and waits for the rest.
  if (tls && (code === "ETIMEDOUT" || message === "timeout"))
    return `${message}; a server that does not speak TLS never answers`;
  return message.replace(SENTINELS_TRIED_AGAIN, "");
}

/** ioredis says how long it waits, another number each time: the same reason would be news again and again. */
const SENTINELS_TRIED_AGAIN = /Retrying from scratch after [\d.]+ms\. /;
