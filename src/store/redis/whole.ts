/** What may be long, read whole, but in steps of a bounded size. */

import type { Runner } from "./connection/runner.ts";
import { fieldsOf, type HashFields } from "./records.ts";

/** Fields that one step gives, about. */
const STEP_FIELDS = 500;

/** All fields of a hash. What is written meanwhile may be in it or not. */
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
