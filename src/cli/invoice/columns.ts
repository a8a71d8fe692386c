/**
 * Finds the columns of a vendor's export. Names are compared without case, spaces and punctuation. docs/reconcile.md
 * lists the vendors.
 */

import { utcDay } from "../../values/time.ts";
import { CliFailure } from "../failure.ts";

/**
 * Meanings of columns. `beside`: input tokens that the `input` column does not include; `end`: the end of the row's
 * time span.
 */
const ROLES = ["date", "end", "model", "input", "beside", "output", "cost", "currency"] as const;
type Role = (typeof ROLES)[number];

/** Indexes of the columns in a row. Several columns of one role are summed. */
export type Columns = Readonly<Record<Role, readonly number[]>>;

/**
 * Known names. The first name that is present counts. For `beside`, see `BESIDE`: all that belong to the input column
 * count.
 */
const KNOWN: Readonly<Record<Exclude<Role, "beside">, readonly string[]>> = {
  date: [
    ...["usagedateutc", "starttimeiso", "usagestartdate", "createdat", "starttime", "dateutc", "date", "day"],
    ...["usagedate", "timestamp", "startingat", "chargeperiodstart"],
  ],
  end: ["endtimeiso", "usageenddate", "endtime", "endingat", "chargeperiodend"],
  model: ["modelversion", "modelpermaslug", "model", "modelname", "lineitem", "skudescription", "metername"],
  input: [
    ...["usageinputtokensnocache", "uncachedinputtokens", "inputtokens", "prompttokens", "tokensprompt"],
    ...["ncontexttokenstotal", "totalinputtokens", "input"],
  ],
  output: [
    ...["usageoutputtokens", "outputtokens", "completiontokens", "tokenscompletion", "ngeneratedtokenstotal"],
    ...["totaloutputtokens", "output"],
  ],
  cost: [
    ...["costusd", "costtotal", "amountvalue", "costinusd", "unroundedcost", "costinbillingcurrency", "totalcost"],
    ...["billedcost", "cost", "usage", "amount", "amountusd", "usd"],
  ],
  currency: ["amountcurrency", "billingcurrency", "billingcurrencycode", "currency"],
};

/** Columns of input tokens that the named input column does not include. */
const BESIDE: Readonly<Record<string, readonly string[]>> = {
  usageinputtokensnocache: [
    ...["usageinputtokenscachewrite", "usageinputtokenscachewrite5m", "usageinputtokenscachewrite1h"],
    "usageinputtokenscacheread",
  ],
  uncachedinputtokens: [
    ...["cachereadinputtokens", "cachecreationinputtokens", "cachecreationephemeral5minputtokens"],
    ...["cachecreationephemeral1hinputtokens", "inputcachedtokens"],
  ],
  inputtokens: ["cachereadinputtokens", "cachecreationinputtokens"],
};

/** A cell of the heading in the form in which it is compared. */
function plain(name: string): string {
  return name.toLowerCase().replaceAll(/[^a-z0-9]/g, "");
}

/** Parses `--columns`: `date=...,model=...,input=a+b`. @throws CliFailure 2 */
export function readColumnNames(text: string): ReadonlyMap<Role, readonly string[]> {
  const named = new Map<Role, readonly string[]>();
  for (const part of text.split(",")) {
    const [, role = "", names = ""] = /^\s*([a-z]+)\s*=(.*)$/s.exec(part) ?? [];
    const columns = names.split("+").map((name) => name.trim());
    if (!isRole(role) || role === "beside" || columns.some((name) => name === "")) {
      const known = ROLES.filter((one) => one !== "beside").join(", ");
      throw new CliFailure(2, `--columns must have a form like date=Day,input=Prompt+Cached; known names: ${known}.`);
    }
    if (named.has(role)) throw new CliFailure(2, `--columns names ${role} twice.`);
    named.set(role, columns);
  }
  return named;
}

function isRole(text: string): text is Role {
  return (ROLES as readonly string[]).includes(text);
}

/** Why a row is not the heading: files may have other lines above it. */
type NoHeading = { readonly missing: string /** How far it is from being one. */; readonly lacks: number };

/**
 * The columns of a heading.
 * @param named names given by the operator, used instead of the known names
 * @throws CliFailure 2 if a name occurs twice
 */
export function columnsOf(
  heading: readonly string[],
  named: ReadonlyMap<Role, readonly string[]>,
): Columns | NoHeading {
  const names = heading.map(plain);
  const found = Object.fromEntries(ROLES.map((role) => [role, [] as number[]])) as Record<Role, number[]>;
  for (const role of ROLES) {
    if (role === "beside") continue;
    const wanted = named.get(role);
    if (wanted) {
      const places = wanted.map((name) => names.indexOf(plain(name)));
      const absent = wanted.filter((_, index) => places[index] === -1);
      if (absent.length > 0) {
        return { missing: `no column ${absent.map((name) => JSON.stringify(name)).join(", ")}`, lacks: absent.length };
      }
      found[role] = places;
      continue;
    }
    const name = KNOWN[role].find((one) => names.includes(one));
    if (name === undefined) continue;
    found[role] = [names.indexOf(name)];
    if (role === "input") {
      found.beside = (BESIDE[name] ?? []).map((one) => names.indexOf(one)).filter((place) => place !== -1);
    }
  }
  const lacking = (["date", "model"] as const).filter((role) => found[role].length === 0);
  if (lacking.length > 0)
    return { missing: `no column of the ${lacking.join(" and the ")}`, lacks: 1 + lacking.length };
  if (found.input.length + found.output.length + found.cost.length === 0) {
    return { missing: "no column of input tokens, output tokens or cost", lacks: 1 };
  }
  const places = Object.values(found).flat();
  const twice = places.find((place) => names.indexOf(names[place] ?? "") !== names.lastIndexOf(names[place] ?? ""));
  if (twice !== undefined) throw new CliFailure(2, `The column ${JSON.stringify(heading[twice])} occurs twice.`);
  return found;
}

/* Reads cells of a vendor's export as days, counts and amounts. Ambiguous text is refused, not guessed. */

/** Decimals with which costs are summed: a row may cost less than a nano-dollar. */
const COST_DIGITS = 15;
const COST_UNIT = 10n ** BigInt(COST_DIGITS);
const NANO = 1_000_000_000n;
/** Largest number of digits before the decimal point. */
const DIGITS_MAX = 15;

const DAY = /^(\d{4})-(\d\d)-(\d\d)$/;
const INSTANT = /^(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?) ?(Z|UTC|[+-]\d\d:?\d\d)?$/i;
const AMERICAN_DAY = /^(\d{1,2})\/(\d{1,2})\/(\d{4})$/;

/**
 * The instant of a row, in milliseconds: `2026-08-01`, also with a time and an offset (default UTC); `08/31/2026`, with
 * the month first; Unix seconds or milliseconds.
 */
export function readInstant(text: string): number | undefined {
  if (/^\d{10}$/.test(text)) return Number(text) * 1_000;
  if (/^\d{13}$/.test(text)) return Number(text);
  const [, month, date, year] = AMERICAN_DAY.exec(text) ?? [];
  const iso = year === undefined ? text : `${year}-${month?.padStart(2, "0")}-${date?.padStart(2, "0")}`;
  if (DAY.test(iso)) return instantOf(iso, "00:00", "Z");
  const [, day, time, zone = "Z"] = INSTANT.exec(iso) ?? [];
  if (day === undefined || time === undefined) return undefined;
  const offset = /^(?:Z|UTC)$/i.test(zone) ? "Z" : zone.length === 5 ? `${zone.slice(0, 3)}:${zone.slice(3)}` : zone;
  return instantOf(day, time, offset);
}

function instantOf(day: string, time: string, zone: string): number | undefined {
  // Date.parse would read the 31st of a short month as the first of the next.
  const midnight = Date.parse(`${day}T00:00:00Z`);
  if (Number.isNaN(midnight) || utcDay(midnight) !== day) return undefined;
  const at = Date.parse(`${day}T${time}${zone}`);
  return Number.isNaN(at) ? undefined : at;
}

const GROUPED = /^\d{1,3}(?:,\d{3})+$/;

/** A number of tokens; an empty cell is 0. */
export function readCount(text: string): number | undefined {
  if (text === "") return 0;
  const [, whole = "", fraction = ""] = /^([\d,]+)(?:\.(0+))?$/.exec(text) ?? [];
  if (whole === "" || (fraction === "" && text.includes("."))) return undefined;
  if (whole.includes(",") && !GROUPED.test(whole)) return undefined;
  const count = Number(whole.replaceAll(",", ""));
  return Number.isSafeInteger(count) ? count : undefined;
}

const AMOUNT = /^([\d,]*)(?:\.(\d*))?(?:e([+-]?\d{1,3}))?$/i;

/**
 * A cost in US dollars: `$1,234.56`, `-0.5`, `(0.50)`, `1.2e-05`, `0.05 USD`; an empty cell is 0.
 * @returns units of 10^-15 dollars; smaller parts are cut off
 */
export function readCost(text: string): bigint | undefined {
  if (text === "") return 0n;
  const [, inBrackets] = /^\((.*)\)$/.exec(text) ?? [];
  const bare = (inBrackets ?? text).replace(/^US\$|^USD|USD$/i, "").trim();
  const [, minus, afterSign = ""] = /^(-?)\s*\$?\s*(?:USD)?\s*(-?.*)$/s.exec(bare) ?? [];
  const second = afterSign.startsWith("-");
  if ((minus === "-" && second) || (inBrackets !== undefined && (minus === "-" || second))) return undefined;
  const amount = readAmount(second ? afterSign.slice(1) : afterSign);
  if (amount === undefined) return undefined;
  return minus === "-" || second || inBrackets !== undefined ? -amount : amount;
}

function readAmount(text: string): bigint | undefined {
  const match = AMOUNT.exec(text);
  if (match === null) return undefined;
  const [, whole = "", fraction = "", exponent = "0"] = match;
  if (whole + fraction === "" || (whole.includes(",") && !GROUPED.test(whole))) return undefined;
  const digits = whole.replaceAll(",", "") + fraction;
  const shift = COST_DIGITS + Number(exponent) - fraction.length;
  if (digits.length + Number(exponent) - fraction.length > DIGITS_MAX || shift < -1_000) return undefined;
  if (digits.length > 1_000) return undefined;
  return shift >= 0 ? BigInt(digits) * 10n ** BigInt(shift) : BigInt(digits) / 10n ** BigInt(-shift);
}

/** Nano-dollars, rounded half away from zero. */
export function nanoOfCost(cost: bigint): bigint {
  const unit = COST_UNIT / NANO;
  return cost < 0n ? -((-cost + unit / 2n) / unit) : (cost + unit / 2n) / unit;
}
