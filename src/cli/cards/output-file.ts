/** The one file that has the text of codes: made before the codes are, so that none is made that cannot be written. */
import { closeSync, fsyncSync, openSync, rmSync, writeFileSync } from "node:fs";
import { CliFailure } from "../failure.ts";

export class OutputFile {
  readonly path: string;
  readonly #descriptor: number;

  /** @throws CliFailure for a file that is there already, or that cannot be made. */
  constructor(path: string) {
    this.path = path;
    try {
      this.#descriptor = openSync(path, "wx", 0o600);
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code === "EEXIST") {
        throw new CliFailure(
          1,
          `${path} is there already and stays as it is; no code was made. Name another with --output.`,
        );
      }
      throw new CliFailure(1, `${path} cannot be written (${code}); no code was made. Name another with --output.`);
    }
  }

  /** @returns why the text is not on the disk, and then there is no file; undefined when it is. */
  write(text: string): string | undefined {
    try {
      writeFileSync(this.#descriptor, text);
      fsyncSync(this.#descriptor);
    } catch (error) {
      this.drop();
      return (error as NodeJS.ErrnoException).code ?? String(error);
    }
    closeSync(this.#descriptor);
    return undefined;
  }

  /** Takes the file away. */
  drop(): void {
    closeSync(this.#descriptor);
    rmSync(this.path, { force: true });
  }
}
