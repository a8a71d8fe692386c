/** Prints a listing as a table for people, as CSV, or as the gateway's answer in JSON. */
import type { JsonObject } from "../../values/json-object.ts";
import { csv } from "./csv.ts";
import { type Column, table } from "./table.ts";

export const LISTING_FORMATS = ["table", "csv", "json"] as const;

/** Options of commands that list something. */
export interface ListingOptions {
  readonly format?: string;
}

/** What is listed. */
interface ListedRows {
  readonly columns: readonly Column[];
  readonly rows: readonly JsonObject[];
  /** The answer as JSON. */
  readonly json: JsonObject;
  /** The message if there is nothing to list. */
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
