/**
 * How a command ends badly: refused (status 1, something answered no or nothing answered) or misused (status 2).
 */

/** Ends the command with the message on standard error. */
export class CliFailure extends Error {
  override readonly name = "CliFailure";
  readonly exitStatus: 1 | 2;
  /** The admin API's code, where it refused. */
  readonly code: string | undefined;

  constructor(exitStatus: 1 | 2, message: string, code?: string) {
    super(message);
    this.exitStatus = exitStatus;
    this.code = code;
  }
}
