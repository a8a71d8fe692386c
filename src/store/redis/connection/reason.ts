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
  return message.replace(SENTINELS_TRIED_AGAIN, "").replace(REPEATED_ARGUMENTS, "");
}

/** ioredis includes its waiting time, a different number each time, so the same reason would be logged as a new one. */
const SENTINELS_TRIED_AGAIN = /Retrying from scratch after [\d.]+ms\. /;

/** A server that does not know a command repeats its arguments, which for AUTH are the password. */
const REPEATED_ARGUMENTS = /,? with args beginning with: .*/s;

/** The code of an error reply, wherever the reply is in a reason. */
const REFUSAL = /(?:^|[.:] )(?<code>WRONGPASS|NOAUTH|NOPERM|ERR unknown command) /;

const REFUSALS: Readonly<Record<string, string>> = {
  WRONGPASS: "the user name or the password is wrong",
  NOAUTH: "a password is needed, and none is configured",
  NOPERM: "its user lacks a right, which the log names",
  "ERR unknown command": "it lacks a command, which the log names",
};

/**
 * What a server says that answers and does not let this gateway in, without the names in its reply.
 * @param reason as `reasonOf` gives it.
 * @returns undefined if the server has not answered, or has answered something else.
 */
export function refusedConnection(reason: string): string | undefined {
  const code = REFUSAL.exec(reason)?.groups?.code;
  return code === undefined ? undefined : `the store refuses the connection: ${REFUSALS[code]} (${code})`;
}
