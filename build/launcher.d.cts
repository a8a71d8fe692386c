import type { Script } from "node:vm";

declare const launcher: {
  readonly names: readonly string[];
  wrapped(code: string): string;
  scriptOf(name: string, text: string, cachedData: Buffer | undefined): Script;
  appended(parts: readonly Buffer[]): Buffer;
  run(scriptNamed: (name: string) => Script, file: string): void;
};
export = launcher;
