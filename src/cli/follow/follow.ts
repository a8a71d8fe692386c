/** Lists with `--follow`: they show new lines until the command is interrupted. */
import type { JsonObject } from "../../values/json-object.ts";
import { parseDurationMs } from "../../values/time.ts";
import { UNREACHABLE } from "../admin-client.ts";
import type { CommandResult } from "../admin-commands.ts";
import { CliFailure } from "../failure.ts";
import { csv, csvRows } from "../output/csv.ts";
import { type Column, GrowingTable } from "../output/table.ts";
import type { Terminal } from "../output/terminal.ts";

/** How a followed list stops and waits. */
export interface Follower {
  readonly terminal: Terminal;
  /** Aborted when the command is interrupted. */
  readonly stop: AbortSignal;
  /** Waits this many milliseconds, or until the command is interrupted. */
  readonly pause: (ms: number) => Promise<void>;
}

/** The source of lines. */
interface LineSource {
  /** The first lines, oldest first. */
  readonly first: readonly JsonObject[];
  /** New lines since the last call, oldest first, each line once; `isMore`: further lines are already available. */
  readonly more: () => Promise<{ readonly rows: readonly JsonObject[]; readonly isMore: boolean }>;
}

/** How lines are written. */
interface LineForm {
  readonly format: string | undefined;
  readonly columns: readonly Column[];
  /** The columns of CSV; default: those of the table. */
  readonly members?: readonly string[];
  /** Turns a line into a row of the table; default: the line itself. */
  readonly shown?: (line: JsonObject) => JsonObject;
}

const PAUSE_MIN_MS = 100;

/** @throws CliFailure 2 for text that is not a duration, or too short a one. */
export function pauseOf(typed = "1s"): number {
  const ms = parseDurationMs(typed);
  if (ms !== undefined && ms >= PAUSE_MIN_MS) return ms;
  throw new CliFailure(2, `--every must be a duration of at least ${PAUSE_MIN_MS}ms, such as 1s or 500ms.`);
}

export function following(source: LineSource, form: LineForm, everyMs: number, follower: Follower): CommandResult {
  return { json: {}, text: "", pieces: (asJson) => pieces(source, writerOf(form, asJson), everyMs, follower) };
}

async function* pieces(
  { first, more }: LineSource,
  write: (rows: readonly JsonObject[]) => string,
  everyMs: number,
  { terminal, stop, pause }: Follower,
): AsyncGenerator<string> {
  yield write(first);
  for (let isAway = false; !stop.aborted; ) {
    const answer = await more().catch((error: unknown) => {
      if (stop.aborted) return undefined;
      if (!isPassing(error)) throw error;
      if (!isAway) terminal.note(`${error.message.split("\n")[0]} Retrying until it answers.`);
      isAway = true;
      return undefined;
    });
    if (answer) {
      if (isAway) terminal.note("The gateway answers again.");
      isAway = false;
      if (answer.rows.length > 0) yield write(answer.rows);
    }
    if (!answer?.isMore) await pause(everyMs);
  }
}

/** Whether an error may be due to a restart of the gateway or its store. */
function isPassing(error: unknown): error is CliFailure {
  return error instanceof CliFailure && [UNREACHABLE, "store_unavailable", "store_older"].includes(error.code ?? "");
}

function writerOf(
  { format, columns, members, shown = (line) => line }: LineForm,
  asJson: boolean,
): (rows: readonly JsonObject[]) => string {
  if (asJson || format === "json") return (rows) => rows.map((row) => `${JSON.stringify(row)}\n`).join("");
  if (format === "csv") {
    const names = members ?? columns.map(({ member }) => member);
    let begun = false;
    return (rows) => {
      const made = members ? rows : rows.map(shown);
      const text = begun ? csvRows(names, made) : csv(names, made);
      begun = true;
      return text;
    };
  }
  const table = new GrowingTable(columns);
  return (rows) => table.add(rows.map(shown));
}
