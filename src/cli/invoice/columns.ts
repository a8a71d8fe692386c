/**
 * Which columns of a vendor's export say what. Names are compared without regard to case, blanks and punctuation;
 * docs/reconcile.md has the vendors that they come from.
 */
import { CliFailure } from "../failure.ts";

/** What a column may say. `beside`: input that is in no column of `input`; `end`: when the row's time ends. */
const ROLES = ["date", "end", "model", "input", "beside", "output", "cost", "currency"] as const;
type Role = (typeof ROLES)[number];

/** The places of the columns in a row; several are added up. */
export type Columns = Readonly<Record<Role, readonly number[]>>;

/** The first name that is there counts, but for `beside`, of which all count with the input column that they belong to. */
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

/** Columns of input tokens that another column of input does not include. */
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

/** A heading's cell as it is compared. */
function plain(name: string): string {
  return name.toLowerCase().replaceAll(/[^a-z0-9]/g, "");
}

/** What `--columns` names: `date=...,model=...,input=a+b`. @throws CliFailure 2 */
export function readColumnNames(text: string): ReadonlyMap<Role, readonly string[]> {
  const named = new Map<Role, readonly string[]>();
  for (const part of text.split(",")) {
    const [, role = "", names = ""] = /^\s*([a-z]+)\s*=(.*)$/s.exec(part) ?? [];
    const columns = names.split("+").map((name) => name.trim());
    if (!isRole(role) || role === "beside" || columns.some((name) => name === "")) {
      const known = ROLES.filter((one) => one !== "beside").join(", ");
      throw new CliFailure(2, `--columns must be like date=Day,input=Prompt+Cached; it knows ${known}.`);
    }
    if (named.has(role)) throw new CliFailure(2, `--columns names ${role} twice.`);
    named.set(role, columns);
  }
  return named;
}

function isRole(text: string): text is Role {
  return (ROLES as readonly string[]).includes(text);
}

/** Why a row is no heading of ours; files may have lines about the account above theirs. */
type NoHeading = { readonly missing: string /** How far it is from being one. */; readonly lacks: number };

/**
 * The columns of a heading.
 * @param named by the operator, instead of the known names
 * @throws CliFailure 2 where a name is there twice
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
  if (twice !== undefined) throw new CliFailure(2, `The column ${JSON.stringify(heading[twice])} is there twice.`);
  return found;
}
