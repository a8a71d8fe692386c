/** The file for new codes. It is created before the codes are, so that no codes are created that cannot be written. */
import { closeSync, fsyncSync, openSync, rmSync, writeFileSync } from "node:fs";
import { CliFailure } from "../failure.ts";

export class OutputFile {
  readonly path: string;
  readonly #descriptor: number;

  /** @throws CliFailure for a file that exists, or that cannot be created. */
  constructor(path: string) {
    this.path = path;
    try {
      this.#descriptor = openSync(path, "wx", 0o600);
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code === "EEXIST") {
        throw new CliFailure(
          1,
          `${path} already exists and is not changed; no code was created. Use --output to name another file.`,
        );
      }
      throw new CliFailure(
        1,
        `${path} cannot be written (${code}); no code was created. Use --output to name another file.`,
      );
    }
  }

  /** @returns undefined on success; otherwise the reason, and the file is removed. */
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

  /** Removes the file. */
  drop(): void {
    closeSync(this.#descriptor);
    rmSync(this.path, { force: true });
  }
}
