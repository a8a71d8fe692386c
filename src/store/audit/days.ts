/** Sums per day against the lines behind them, over all days: money, requests and tokens. */
import { formatUsd } from "../../values/money.ts";
import { isUpstreamField, partsOfUpstreamField } from "../names.ts";
import { MONEY_KINDS, partsOfField, type UsageTotal } from "../sums/day-sums.ts";
import { COUNT_KINDS } from "../sums/token-sums.ts";
import type { AccountCheck, Finding } from "./snapshot.ts";

/**
 * `day_sums`, `day_costs`, `day_counts`: the sums of each group, model and key equal those of its lines.
 * `upstream_sums`: so do the expected bills of each upstream. Archived lines are known only by group: then a field has
 * at least what its lines give, and the group exactly that.
 */
const fieldSums: AccountCheck = ({ fields, archived }) =>
  fields.flatMap(({ field, kept, lines }) => {
    if (isUpstreamField(field)) return differingUpstream(field, kept, lines, archived);
    const { group, model, key } = partsOfField(field);
    const name = field === "||" ? "an invalid field" : `the group ${group}, model ${model}, key ${key}`;
    return differing({ name, about: field }, kept, lines, archived);
  });

const groupSums: AccountCheck = ({ groups }) =>
  groups.flatMap(({ group, kept, lines }) =>
    differing({ name: `the group ${group}`, about: group }, kept, lines, false),
  );

interface DayName {
  readonly name: string;
  readonly about: string;
}

function differing({ name, about }: DayName, kept: UsageTotal, lines: UsageTotal, atLeast: boolean): Finding[] {
  const found: Finding[] = [];
  const wrong = wrongBy(atLeast);
  if (wrong(kept.amount, lines.amount)) {
    const words = `${formatUsd(kept.amount)} USD; the lines sum up to ${formatUsd(lines.amount)}`;
    found.push({ check: "day_sums", line: undefined, about, what: `The sum of all days in ${name} is ${words}.` });
  }
  const costs = costWords(kept, lines, wrong);
  if (costs.length > 0) {
    const what = `Over all days, ${name} has ${costs.join(", ")}.`;
    found.push({ check: "day_costs", line: undefined, about, what });
  }
  const counts = countWords(kept, lines, wrong);
  if (counts.length > 0) {
    const what = `Over all days, ${name} has ${counts.join(", ")}.`;
    found.push({ check: "day_counts", line: undefined, about, what });
  }
  return found;
}

function differingUpstream(field: string, kept: UsageTotal, lines: UsageTotal, atLeast: boolean): Finding[] {
  const wrong = wrongBy(atLeast);
  const { upstream, model } = partsOfUpstreamField(field);
  const charged = `charged ${formatUsd(kept.amount)} USD instead of ${formatUsd(lines.amount)}`;
  const words = [
    ...(wrong(kept.amount, lines.amount) ? [charged] : []),
    ...costWords(kept, lines, wrong),
    ...countWords(kept, lines, wrong),
  ];
  if (words.length === 0) return [];
  const what = `Over all days, the model ${model} of the upstream ${upstream} has ${words.join(", ")}.`;
  return [{ check: "upstream_sums", line: undefined, about: field, what }];
}

type Wrong = (kept: bigint | number, lines: bigint | number) => boolean;

function wrongBy(atLeast: boolean): Wrong {
  return (a, b) => (atLeast ? a < b : a !== b);
}

function costWords(kept: UsageTotal, lines: UsageTotal, wrong: Wrong): string[] {
  return MONEY_KINDS.filter((kind) => wrong(kept[kind], lines[kind])).map(
    (kind) => `${kind} ${formatUsd(kept[kind])} USD instead of ${formatUsd(lines[kind])}`,
  );
}

function countWords(kept: UsageTotal, lines: UsageTotal, wrong: Wrong): string[] {
  return COUNT_KINDS.filter((kind) => wrong(kept.counts[kind], lines.counts[kind])).map(
    (kind) => `${kept.counts[kind]} ${WORDS[kind]} instead of ${lines.counts[kind]}`,
  );
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
