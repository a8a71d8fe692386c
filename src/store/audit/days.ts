/** Sums per day against the lines that they follow from, over all days: money, requests and tokens. */
import { formatUsd } from "../../values/money.ts";
import { partsOfField, type UsageTotal } from "../day-sums.ts";
import { COUNT_KINDS } from "../token-sums.ts";
import type { AccountCheck, Finding } from "./snapshot.ts";

/**
 * `day_sums`, `day_counts`: each group, model and key has been charged what its lines say. Archived lines are known by
 * group only: then a field has at least what its lines say, and the group has just that.
 */
const fieldSums: AccountCheck = ({ fields, archived }) =>
  fields.flatMap(({ field, kept, lines }) => {
    const { group, model, key } = partsOfField(field);
    const name = field === "||" ? "fields that are none" : `the group ${group}, model ${model}, key ${key}`;
    return differing({ name, about: field }, kept, lines, archived);
  });

const groupSums: AccountCheck = ({ groups }) =>
  groups.flatMap(({ group, kept, lines }) =>
    differing({ name: `the group ${group}`, about: group }, kept, lines, false),
  );

interface Place {
  readonly name: string;
  readonly about: string;
}

function differing({ name, about }: Place, kept: UsageTotal, lines: UsageTotal, atLeast: boolean): Finding[] {
  const found: Finding[] = [];
  const wrong = (a: bigint | number, b: bigint | number) => (atLeast ? a < b : a !== b);
  if (wrong(kept.amount, lines.amount)) {
    const words = `${formatUsd(kept.amount)} USD; the lines sum up to ${formatUsd(lines.amount)}`;
    found.push({ check: "day_sums", line: undefined, about, what: `The sum of all days in ${name} is ${words}.` });
  }
  const kinds = COUNT_KINDS.filter((kind) => wrong(kept.counts[kind], lines.counts[kind]));
  if (kinds.length > 0) {
    const words = kinds.map((kind) => `${kept.counts[kind]} ${WORDS[kind]} in place of ${lines.counts[kind]}`);
    found.push({ check: "day_counts", line: undefined, about, what: `All days in ${name} count ${words.join(", ")}.` });
  }
  return found;
}

const WORDS: Readonly<Record<(typeof COUNT_KINDS)[number], string>> = {
  requests: "requests",
  input: "input tokens",
  cachedInput: "cached input tokens",
  cacheWrite: "cache write tokens",
  output: "output tokens",
  reasoning: "reasoning tokens",
};

export const dayChecks: readonly AccountCheck[] = [fieldSums, groupSums];
