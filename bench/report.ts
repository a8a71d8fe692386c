/** Figures as text and as JSON. */
import type { Machine } from "./machine.ts";
import { BARE_PROXY, BASELINE } from "./subjects.ts";

/** One round of one case through one subject. */
export interface Round {
  readonly units: number;
  readonly requests: number;
  readonly seconds: number;
  /** Microseconds of CPU time: the subject's own, and that of the servers it calls. */
  readonly cpuUs: number;
  readonly behindUs: number;
}

/** All rounds of one case through one subject. */
export interface Figures {
  readonly case: string;
  readonly subject: string;
  readonly unit: string;
  readonly rounds: readonly Round[];
  /** Microseconds of CPU time per unit; the subject's own, median, least and most. */
  readonly cpuUsPerUnit: number;
  readonly cpuUsPerUnitMin: number;
  readonly cpuUsPerUnitMax: number;
  /** The same per request; for a stream, all of its events together. */
  readonly cpuUsPerRequest: number;
  /** Median of the servers that the subject calls, per request. */
  readonly behindUsPerRequest: number;
  readonly unitsPerSecond: number;
}

export interface Report {
  readonly machine: Machine;
  readonly rounds: number;
  readonly connections: number;
  readonly figures: readonly Figures[];
}

export function summarise(facts: { case: string; subject: string; unit: string }, rounds: readonly Round[]): Figures {
  const perUnit = rounds.map((round) => round.cpuUs / round.units);
  return {
    ...facts,
    rounds,
    cpuUsPerUnit: median(perUnit),
    cpuUsPerUnitMin: Math.min(...perUnit),
    cpuUsPerUnitMax: Math.max(...perUnit),
    cpuUsPerRequest: median(rounds.map((round) => round.cpuUs / round.requests)),
    behindUsPerRequest: median(rounds.map((round) => round.behindUs / round.requests)),
    unitsPerSecond: median(rounds.map((round) => round.units / round.seconds)),
  };
}

function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  const high = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? high : ((sorted[middle - 1] ?? Number.NaN) + high) / 2;
}

/** The report as Markdown that is also aligned for a terminal. */
export function asText({ machine, rounds, connections, figures }: Report): string {
  const facts = [
    `${machine.cores} cores (${machine.cpu}), Linux ${machine.linux}, Node ${machine.node}, nginx ${machine.nginx}, Redis ${machine.redis}`,
    `${rounds} rounds in turn, ${connections} connections; CPU time is user + system, median (least - most)`,
  ];
  return [...facts, "", ...table([HEADINGS, ...figures.map((one) => row(one, figures))]), ""].join("\n");
}

const HEADINGS = [
  "case",
  "subject",
  "CPU us per unit",
  "unit",
  "us per request",
  "x nginx",
  "x bare",
  "behind it, us",
  "units/s",
];

function row(one: Figures, all: readonly Figures[]): string[] {
  const idle = one.cpuUsPerUnit === 0;
  const ratio = (to: string) => ratioOf(one, all, to)?.toFixed(2) ?? "-";
  const own = `${figure(one.cpuUsPerUnit)} (${figure(one.cpuUsPerUnitMin)} - ${figure(one.cpuUsPerUnitMax)})`;
  return [
    one.case,
    one.subject,
    idle ? "-" : own,
    one.unit,
    idle ? "-" : figure(one.cpuUsPerRequest),
    ratio(BASELINE),
    ratio(BARE_PROXY),
    one.behindUsPerRequest === 0 ? "-" : figure(one.behindUsPerRequest),
    one.unitsPerSecond.toFixed(0),
  ];
}

/** A ratio that grows by more than this is reported; noise between two runs is about half of it. */
const WORSE_BY_MAX = 0.15;

/** Lists what has become more expensive since an earlier run, relative to the bare proxy of the same run. */
export function worseThan({ figures }: Report, { figures: before }: Report): readonly string[] {
  return figures.flatMap((one) => {
    const then = before.find((other) => other.case === one.case && other.subject === one.subject);
    const [now, was] = [ratioOf(one, figures, BARE_PROXY), then && ratioOf(then, before, BARE_PROXY)];
    if (now === undefined || was === undefined || now <= was * (1 + WORSE_BY_MAX)) return [];
    return [`${one.case}, ${one.subject}: ${now.toFixed(2)} times the ${BARE_PROXY}, was ${was.toFixed(2)}`];
  });
}

/** CPU time as a multiple of another subject's in the same case; undefined if one of them has none. */
export function ratioOf(one: Figures, all: readonly Figures[], to: string): number | undefined {
  const baseline = all.find((other) => other.case === one.case && other.subject === to);
  return baseline && baseline.cpuUsPerUnit > 0 && one.cpuUsPerUnit > 0
    ? one.cpuUsPerUnit / baseline.cpuUsPerUnit
    : undefined;
}

/** Three significant digits. */
function figure(value: number): string {
  return value >= 100 ? value.toFixed(0) : value.toPrecision(3);
}

function table(rows: readonly (readonly string[])[]): string[] {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((cells) => cells[column]?.length ?? 0)));
  const line = (cells: readonly string[]) => `| ${cells.map((cell, i) => cell.padEnd(widths[i] ?? 0)).join(" | ")} |`;
  const rule = `|${widths.map((width) => "-".repeat(width + 2)).join("|")}|`;
  return rows.flatMap((cells, i) => (i === 0 ? [line(cells), rule] : [line(cells)]));
}
