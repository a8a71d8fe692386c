/** The message in which a thread reports an attempt. */
import { BUILD } from "../../values/program/program.ts";
import type { Problem } from "../problems.ts";
import type { LoadAttempt } from "./attempt.ts";
import { packSettings, unpackSettings } from "./packed.ts";

export interface ThreadReply {
  /** Of the thread's program, which may have been replaced on disk since this process started. */
  readonly build: string;
  readonly tried: Map<string, string>;
  readonly made:
    | { readonly problems: readonly Problem[] }
    | { readonly packed: Uint8Array<ArrayBuffer>; readonly files: ReadonlyMap<string, string> };
}

/** @param attempt its settings are unusable afterwards. */
export function replyOf({ loaded, tried }: LoadAttempt): ThreadReply {
  const { build } = BUILD;
  if ("problems" in loaded) return { build, tried, made: loaded };
  return { build, tried, made: { packed: packSettings(loaded.settings), files: loaded.copy.files } };
}

/**
 * @param text the configuration's text, which the thread was given.
 * @throws if the thread's program is of another build.
 */
export function attemptOf({ build, made, tried }: ThreadReply, text: string): LoadAttempt {
  if (build !== BUILD.build) throw new Error(`the thread is of build ${build}`);
  if ("problems" in made) return { loaded: made, tried };
  const { packed, files } = made;
  const copy = { text, files, made: { build, packed } };
  return { loaded: { settings: unpackSettings(packed), copy }, tried };
}
