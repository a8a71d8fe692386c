/** How a command fails: refused or unanswered (exit status 1), or wrong usage (exit status 2). */

/** Ends the command and prints the message on standard error. */
export class CliFailure extends Error {
  override readonly name = "CliFailure";
  readonly exitStatus: 1 | 2;
  /** The admin API's code, if it refused. */
  readonly code: string | undefined;

  constructor(exitStatus: 1 | 2, message: string, code?: string) {
    super(message);
    this.exitStatus = exitStatus;
    this.code = code;
  }
}
