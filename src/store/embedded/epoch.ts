/** The mark of the embedded store's history; `redis/lua/epoch.lua` does the same. */
import type { EpochMark } from "../epoch.ts";
import type { Context } from "./context.ts";

const COUNT_EVERY_MS = 1_000;

interface EpochRow {
  readonly mark: EpochMark;
  readonly atMs: number;
}

export function countEpoch(
  context: Context,
  known: { readonly id: string; readonly countMin: number } | undefined,
  fresh: string,
): EpochMark | undefined {
  const found = read(context);
  if (!found) {
    if (known) return undefined;
    return write(context, { id: fresh, count: 1, past: [], stopped: false });
  }
  const { mark, atMs } = found;
  const ours = known === undefined || (known.id === mark.id && mark.count >= known.countMin);
  const nowMs = context.nowMs();
  const due = nowMs - atMs >= COUNT_EVERY_MS || nowMs < atMs;
  return ours && !mark.stopped && due ? write(context, { ...mark, count: mark.count + 1 }) : mark;
}

export function stopEpoch(context: Context, id: string): void {
  const found = read(context);
  if (found?.mark.id === id) write(context, { ...found.mark, stopped: true });
}

export function renewEpoch(
  context: Context,
  from: string | undefined,
  to: { readonly id: string; readonly past: readonly string[] },
): EpochMark | undefined {
  const found = read(context);
  if (found?.mark.id !== from) return undefined;
  return write(context, { ...to, count: found?.mark.count ?? 0, stopped: false });
}

function read(context: Context): EpochRow | undefined {
  const row = context.db.get("SELECT id, n, at, past, stopped FROM epoch");
  if (!row) return undefined;
  const past = String(row.past);
  const mark = {
    id: String(row.id),
    count: Number(row.n),
    past: past === "" ? [] : past.split(","),
    stopped: Number(row.stopped) === 1,
  };
  return { mark, atMs: Number(row.at) };
}

function write(context: Context, mark: EpochMark): EpochMark {
  context.db.commitNormal(() =>
    context.db.run(
      "INSERT OR REPLACE INTO epoch (one, id, n, at, past, stopped) VALUES (1, ?, ?, ?, ?, ?)",
      mark.id,
      mark.count,
      context.nowMs(),
      mark.past.join(","),
      mark.stopped ? 1 : 0,
    ),
  );
  return mark;
}
