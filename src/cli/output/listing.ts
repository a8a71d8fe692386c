/** A listing as it is asked for: a table for people, a table for spreadsheets, or what the gateway has answered. */
import type { JsonObject } from "../../values/json-object.ts";
import { csv } from "./csv.ts";
import { type Column, table } from "./table.ts";

export const LISTING_FORMATS = ["table", "csv", "json"] as const;

/** What the commands that list something take. */
export interface ListingOptions {
  readonly format?: string;
}

/** What is listed. */
interface ListedRows {
  readonly columns: readonly Column[];
  readonly rows: readonly JsonObject[];
  /** The answer as JSON. */
  readonly json: JsonObject;
  /** What is said to people where there is nothing to list. */
  readonly none: string;
}

export function listing({ format }: ListingOptions, { columns, rows, json, none }: ListedRows): string {
  if (format === "json") return `${JSON.stringify(json)}\n`;
  if (format === "csv") {
    const members = columns.map(({ member }) => member);
    return csv(members, rows);
  }
  return rows.length === 0 ? `${none}\n` : table(columns, rows);
}
