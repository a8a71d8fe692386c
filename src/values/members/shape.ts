/**
 * The members that a JSON object of a request may have, and what each means for the bill. The meaning of an unlisted
 * name is not guessed.
 */

/**
 * What a known member means for the bill.
 * - `plain`: costs nothing beyond the tokens that are held and counted anyway; passes byte for byte.
 * - `tier`: changes the unit prices (a service tier, a region); needs a price of that name under `price.tiers`.
 * - `option`: buys something in addition to tokens, or lets the server answer with another model; needs a price of its
 *   own name under `price.options`.
 * - `limit`: an output limit under another name than the protocol's; always refused, because the hold could not follow
 *   it.
 * - `state`: refers to data that a server keeps and that belongs to the owner of the credential; refused, except
 *   `previous_response_id` if the upstream is `stateful`.
 * - `envelope`: holds members that a server merges into the body, or says where and with which identity to send the
 *   request; left out, even if unknown members pass.
 */
export type MemberMeaning = "plain" | "tier" | "option" | "limit" | "state" | "envelope";

export interface Shape {
  readonly meanings: ReadonlyMap<string, MemberMeaning>;
  /** The shapes of the objects, or of the elements of the arrays, under a member. A member without one is data. */
  readonly inside: ReadonlyMap<string, Shape>;
  /** The known names by their folded form. */
  readonly folded: ReadonlyMap<string, string>;
}

type Names = Partial<Readonly<Record<MemberMeaning, string>>>;

/**
 * Makes a shape.
 * @param names by meaning, separated by white space. A member with a shape inside is plain unless listed.
 */
export function shape(names: Names, inside: Readonly<Record<string, Shape>> = {}): Shape {
  const meanings = new Map<string, MemberMeaning>();
  for (const name of Object.keys(inside)) meanings.set(name, "plain");
  for (const [meaning, list] of Object.entries(names)) {
    for (const name of list.split(/\s+/)) if (name !== "") meanings.set(name, meaning as MemberMeaning);
  }
  const folded = new Map([...meanings.keys()].map((name) => [foldName(name), name]));
  return { meanings, inside: new Map(Object.entries(inside)), folded };
}

/** The members of two shapes together; if both have a name, the second one's meaning applies. */
export function joined(first: Shape, second: Shape): Shape {
  return {
    meanings: new Map([...first.meanings, ...second.meanings]),
    inside: new Map([...first.inside, ...second.inside]),
    folded: new Map([...first.folded, ...second.folded]),
  };
}

/**
 * A name as the most lenient server reads it: without compatibility forms, without case, and only letters and digits.
 * Go's encoding/json ignores case by Unicode's simple folding (so the Kelvin sign is a k and the long s an s). Its
 * successor can also ignore `_` and `-`. Rust's and Python's libraries are often configured to accept camelCase as
 * well.
 */
export function foldName(name: string): string {
  if (ASCII.test(name)) return name.toLowerCase().replace(/[^a-z0-9]/g, "");
  // Marks are removed before normalization: sorting thousands of marks takes ten times as long as everything else.
  return name
    .replace(/\p{M}/gu, "")
    .normalize("NFKC")
    .toUpperCase()
    .toLowerCase()
    .normalize("NFKC")
    .replace(/[^\p{L}\p{N}]/gu, "");
}

/** Nearly all names; folding these in full would cost several times as much. */
const ASCII = /^[\0-\x7f]*$/;

/**
 * A letter or digit that does not fold to an ASCII letter or digit, and not to nothing either, as some forms of Arabic
 * vowel marks do. A name with one cannot be a known name. Some of them become eighteen characters when folded, which a
 * free request with 8,000 names would exploit.
 */
const FOREIGN = /(?![\p{Script=Latin}\p{Script=Common}\p{Script=Inherited}\ufc5e-\ufc63\ufe70-\ufe7f])[\p{L}\p{N}]/u;

/** Longer names are not checked: no known name is that long, and folding it would cost time for everybody. */
const NAME_CHARS_MAX = 128;

/** The known name for which some server would mistake this one; undefined if there is none. */
export function mistakenFor(name: string, { meanings, folded }: Shape): string | undefined {
  if (meanings.has(name) || isOverlong(name) || FOREIGN.test(name)) return undefined;
  return folded.get(foldName(name));
}

/** Whether a name is too long to be known; such a name never goes upstream. */
export function isOverlong(name: string): boolean {
  return name.length > NAME_CHARS_MAX;
}
