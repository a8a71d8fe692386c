/** A listing as it is asked for: a table for people, or a table for spreadsheets. */
import type { JsonObject } from "../../values/json-object.ts";
import { csv } from "./csv.ts";
import { type Column, table } from "./table.ts";

export const LISTING_FORMATS = ["table", "csv"] as const;

/** What the commands that list something take. */
export interface ListingOptions {
  readonly format?: string;
}

/** @param none what is said to people where there is nothing to list. */
export function listing(
  { format }: ListingOptions,
  columns: readonly Column[],
  rows: readonly JsonObject[],
  none: string,
): string {
  if (format === "csv")
    return csv(
      columns.map(({ member }) => member),
      rows,
    );
  return rows.length === 0 ? `${none}\n` : table(columns, rows);
}
