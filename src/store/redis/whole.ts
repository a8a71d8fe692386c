/** Reads long records whole, in bounded steps. */

import type { Runner } from "./connection/runner.ts";
import { fieldsOf, type HashFields } from "./records.ts";

/** The approximate number of fields per step. */
const STEP_FIELDS = 500;

/** All fields of a hash. A concurrent write may or may not be included. */
export async function wholeHash(runner: Runner, key: string): Promise<HashFields> {
  const fields: Record<string, string> = {};
  let cursor = "0";
  do {
    const from = cursor;
    const [next, flat] = await runner.step((redis) => redis.hscan(key, from, STEP_FIELDS));
    Object.assign(fields, fieldsOf(flat));
    cursor = next;
  } while (cursor !== "0");
  return fields;
}
