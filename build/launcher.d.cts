import type { Script } from "node:vm";

declare const launcher: {
  wrapped(code: string): string;
  scriptOf(text: string, cachedData: Buffer | undefined): Script;
  appended(parts: readonly Buffer[]): Buffer;
  run(script: Script, file: string): void;
};
export = launcher;
