/** Lists that go on as new lines come, until the command is interrupted. */
import type { JsonObject } from "../../values/json-object.ts";
import { parseDurationMs } from "../../values/time.ts";
import { UNREACHABLE } from "../admin-client.ts";
import type { CommandResult } from "../admin-commands.ts";
import { CliFailure } from "../failure.ts";
import { csv, csvRows } from "../output/csv.ts";
import { type Column, GrowingTable } from "../output/table.ts";
import type { Terminal } from "../output/terminal.ts";

/** Until when it goes on, and how it waits. */
export interface Follower {
  readonly terminal: Terminal;
  /** Aborted when the command is interrupted. */
  readonly stop: AbortSignal;
  /** Waits so many milliseconds, or until it is interrupted. */
  readonly pause: (ms: number) => Promise<void>;
}

/** Lines as they come. */
interface LineSource {
  /** What there is at first, oldest first. */
  readonly first: readonly JsonObject[];
  /** What has come since, oldest first, each line once, and whether there is more already. */
  readonly more: () => Promise<{ readonly rows: readonly JsonObject[]; readonly isMore: boolean }>;
}

/** How lines are written. */
interface LineForm {
  readonly format: string | undefined;
  readonly columns: readonly Column[];
  /** Of the CSV; those of the table when left out. */
  readonly members?: readonly string[];
  /** A line as a row of the table; the line itself when left out. */
  readonly shown?: (line: JsonObject) => JsonObject;
}

const PAUSE_MIN_MS = 100;

/** @throws CliFailure 2 for what is no duration. */
export function pauseOf(typed = "1s"): number {
  const ms = parseDurationMs(typed);
  if (ms !== undefined && ms >= PAUSE_MIN_MS) return ms;
  throw new CliFailure(2, `--every must be a duration from ${PAUSE_MIN_MS}ms on, such as 1s or 500ms.`);
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
      if (!isAway) terminal.note(`${error.message.split("\n")[0]} Trying again until it answers.`);
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

/** What a restart of the gateway or of its store looks like. */
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
