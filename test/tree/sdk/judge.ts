/**
 * Finds out by trial how every member is translated to another protocol: one request without it, and one with each of
 * its values.
 */
import { type Json, least, valuesOf } from "./samples.ts";
import type { Member, ObjectForm } from "./walk.ts";

/**
 * carried: its value is in the upstream's body under its own name; mapped: the body, or the translation of the reply,
 * expresses it in another form; named: it is left out and the header says so; refused: 400 with its name. `lost` is
 * none of these, and an error.
 */
export type Word = "carried" | "mapped" | "named" | "refused" | "lost";

/** A member or a form at its path, with the results of its translation. */
export interface Judged {
  /** Names joined by dots. A form in brackets is an element of a list, one in parentheses a value. */
  readonly path: string;
  readonly words: readonly Word[];
  /** The number of requests that prove it; 0: it shares the result of the object that contains it. */
  readonly proofs: number;
  /** The value that was lost, or that was left out without being named. */
  readonly fault?: string | undefined;
}

/** One step on the path from the body to a member. */
interface Step {
  readonly form: ObjectForm;
  readonly path: string;
  readonly member: Member;
  /** Whether the object below is an element of a list. */
  readonly isListed: boolean;
}

/** The outcome of one request, reply or event. */
export interface Outcome {
  /** The param of a refusal, or why a reply is not an answer; undefined if it was accepted. */
  readonly refused: string | undefined;
  /** What the other side gets. */
  readonly text: string;
  /** Other effects of it. */
  readonly plan: string;
  /** The names that were reported as left out. */
  readonly left: readonly string[];
}

/** How a value is tried. */
export interface Trial {
  /** Sends an object. @param member the member of the root object that is tried, or that contains the object. */
  send(built: Json, member: string): Outcome;
  /** The result of a member whose absence makes no difference and that is not named. */
  readonly silent: Word;
  /** Whether an element is compared with an empty list instead of a missing list. */
  readonly isListKept: boolean;
  /** Whether the objects below this member are tried as well. */
  enters(path: string): boolean;
}

/** Judges every member that is reachable from a root type. */
export class Judge {
  readonly judged: Judged[] = [];
  readonly #trial: Trial;

  constructor(trial: Trial) {
    this.#trial = trial;
  }

  /** @param at the path of the root; empty for a body. */
  root(form: ObjectForm, at = ""): readonly Judged[] {
    this.#object(form, at, [], undefined, ["carried"]);
    return this.judged;
  }

  /**
   * @param fate the result of the whole object, if nothing in it can have a better one.
   * @param presence the result of an object with only its required members, which its tag shares.
   */
  #object(
    form: ObjectForm,
    path: string,
    way: readonly Step[],
    fate: Word | undefined,
    presence: readonly Word[],
  ): void {
    for (const member of form.members) {
      const here = path === "" ? member.name : `${path}.${member.name}`;
      const step: Step = { form, path, member, isListed: false };
      const isTag = member.forms.length === 1 && member.forms[0]?.kind === "literal" && !member.isOptional;
      if (fate !== undefined || isTag) this.#note(here, fate === undefined ? presence : [fate], 0);
      else this.#member(here, step, way);
      this.#forms(here, step, way, fate);
    }
  }

  #note(path: string, words: readonly Word[], proofs: number, fault?: string): void {
    this.judged.push({ path, words, proofs, fault });
  }

  #member(here: string, step: Step, way: readonly Step[]): void {
    const values = valuesOf(here, step.member);
    if (values.length === 0) return;
    // A required member with one possible value is compared with a request without it, whatever that gives.
    const isAbsentAllowed = step.member.isOptional || values.length === 1;
    const base = this.#ask([...way, step], isAbsentAllowed ? undefined : values[0]);
    const told = values.slice(isAbsentAllowed ? 0 : 1).map((value) => {
      const outcome = this.#ask([...way, step], value);
      const word = this.#word(base, outcome, step, value);
      return { value, word, misnamed: misnamed(word, base, outcome, [...way, step]) };
    });
    const words = [...new Set(told.map(({ word }) => word))];
    const loud = words.filter((word) => word !== "lost");
    // One of the values of a required member is the base of the comparison.
    const lost = told.find(({ word, value }) => word === "lost" && isAbsentAllowed && !happensAnyway(here, value));
    const fault = lost ?? (loud.length === 0 ? told.find(({ value }) => !happensAnyway(here, value)) : undefined);
    const settled: readonly Word[] = loud.length === 0 ? ["mapped"] : loud;
    const misled = told.find((one) => one.misnamed !== undefined)?.misnamed;
    this.#note(here, fault ? [...loud, "lost"] : settled, told.length, fault ? JSON.stringify(fault.value) : misled);
  }

  #forms(here: string, step: Step, way: readonly Step[], fate: Word | undefined): void {
    const objects = step.member.forms.flatMap((form) => {
      if (form.kind === "object") return [{ form, isListed: false }];
      if (form.kind !== "list") return [];
      return form.of.filter((one) => one.kind === "object").map((one) => ({ form: one, isListed: true }));
    });
    if (!this.#trial.enters(here)) return;
    for (const { form, isListed } of objects) {
      if (way.some((above) => above.form === form) || step.form === form) continue; // A recursive type.
      const name = nameOf(
        form,
        objects.map((one) => one.form),
      );
      const path = here + (isListed ? `[${name}]` : name === "" ? "" : `(${name})`);
      const down = [...way, { ...step, isListed }];
      const presence = fate ? [fate] : this.#presence(path, down, form);
      const whole = presence.find((word) => word !== "carried" && word !== "mapped");
      this.#object(form, path, down, fate ?? whole, presence);
    }
  }

  /** The result of an object with only its required members; none if it is empty and has no meaning. */
  #presence(path: string, way: readonly Step[], form: ObjectForm): readonly Word[] {
    const step = way.at(-1) as Step;
    const value = least(form, path);
    const base = this.#ask(way, this.#trial.isListKept && step.isListed ? [] : undefined);
    const outcome = this.#ask(way, step.isListed ? [value] : value);
    const word = this.#presenceWord(base, outcome, step, form, value);
    const isEmpty = word === this.#trial.silent && Object.values(value).every(isNothing);
    const words: readonly Word[] = isEmpty ? [] : word === "lost" && happensAnyway(path, value) ? ["mapped"] : [word];
    const misled = misnamed(word, base, outcome, way, form);
    this.#note(path, words, 1, words[0] === "lost" ? JSON.stringify(value) : misled);
    return words;
  }

  /** An object of which only some members are left out is not left out itself. */
  #presenceWord(base: Outcome, outcome: Outcome, step: Step, form: ObjectForm, value: unknown): Word {
    const isCarried = outcome.text !== base.text || outcome.plan !== base.plan;
    const isOwn = (left: string) => form.members.some((member) => left.split(".").slice(1).includes(member.name));
    const left = isCarried ? outcome.left.filter((one) => !isOwn(one)) : outcome.left;
    return this.#word(base, { ...outcome, left }, step, value);
  }

  #word(base: Outcome, { refused, text, plan, left }: Outcome, { form, member: { name } }: Step, value: unknown): Word {
    if (refused !== undefined) return "refused";
    if (left.some((one) => !base.left.includes(one))) return "named";
    if (text === base.text && plan === base.plan) {
      // A member that is named for any value, or with its surroundings, is named in both.
      const isNamed = left.some((one) => one.endsWith(`.${name}`) || one.endsWith(`.${form.tag}`));
      return isNamed ? "named" : this.#trial.silent;
    }
    const written = `"${name}":${JSON.stringify(value)}`;
    return text.includes(written) && !base.text.includes(written) ? "carried" : "mapped";
  }

  /** The outcome for this value at the end of the path; undefined: for its absence. */
  #ask(way: readonly Step[], value: unknown): Outcome {
    return this.#trial.send(built(way, value), way[0]?.member.name ?? "");
  }
}

function isNothing(value: unknown): boolean {
  return value === null || (Array.isArray(value) && value.length === 0);
}

/** Members that are reported under their newer name. */
const ALIASES: Readonly<Record<string, readonly string[]>> = {
  output_format: ["format"],
  user: ["safety_identifier"],
  generate_summary: ["summary"],
  redacted_thinking: ["thinking"],
};

/** The tags by which a form is known: the values of its `type`. */
function tagsOf({ members }: ObjectForm): readonly string[] {
  const type = members.find(({ name }) => name === "type" || name === "role");
  return (type?.forms ?? []).flatMap((form) => (form.kind === "literal" ? [String(form.value)] : []));
}

/** Names that stand for several types of a protocol. */
const FAMILIES: Readonly<Record<string, RegExp>> = {
  hosted_call: /_call(_output)?$|^mcp_|^tool_search_/,
  server_tool_use: /_tool_result$|_tool_use$/,
  hosted: /./,
};

/** The name under which a loss or refusal is reported, if it is not that of the member or of what contains it. */
function misnamed(
  word: Word,
  base: Outcome,
  outcome: Outcome,
  way: readonly Step[],
  form?: ObjectForm,
): string | undefined {
  const isNew = (name: string) => !base.left.includes(name);
  const told =
    word === "refused"
      ? [outcome.refused ?? ""].filter((one) => /^[\w.[\]]+$/.test(one))
      : word === "named"
        ? outcome.left.filter(isNew)
        : [];
  const forms = [...way.map((step) => step.form), ...(form ? [form] : [])];
  const known = [...way.map((step) => step.member.name), ...forms.flatMap(tagsOf)].flatMap(
    (name) => ALIASES[name] ?? [name],
  );
  const isAbout = (name: string) => {
    const last =
      name
        .split(/[.[\]\d]+/)
        .filter((part) => part !== "")
        .at(-1) ?? "";
    const isKnown = last !== "" && known.some((one) => one === last || (one !== "" && one.startsWith(last)));
    return isKnown || last === "type" || known.some((one) => FAMILIES[last]?.test(one));
  };
  return told.length === 0 || told.some(isAbout) ? undefined : `told as ${told.join(" ")}`;
}

/** Values that ask for what happens anyway, by the end of their path: the upstream does the same without them. */
const ANYWAY: readonly (readonly [end: RegExp, value: unknown, why: string])[] = [
  [/(store|include_obfuscation|async|defer_loading|eager_input_streaming|prewarm)$/, false, "nothing is wanted"],
  [/^store$/, true, "the default of responses"],
  [/(logprobs|stream|include_usage|is_error|disable_parallel_tool_use|background)$/, false, "nothing is wanted"],
  [/(reasoning_effort|reasoning\.effort)$/, "none", "what has no switch is not asked; `thinking_off: reject` refuses"],
  [/^service_tier$/, "default", "the standard prices"],
  [/^service_tier$/, "standard_only", "the standard prices"],
  [/^(speed|reasoning\.mode)$/, "standard", "the default"],
  [/^truncation$/, "disabled", "the default"],
  [/clear_at$/, "never", "the default"],
  [/format\(json_schema\)(\.json_schema)?\.strict$/, true, "messages binds the model to every schema"],
  [/\[reasoning\]\.(summary|content)\[/, undefined, "the sealed original counts, not the client's copy"],
  [/citations\.enabled$/, false, "no citations are wanted"],
  [/external_web_access$/, false, "the web is not asked"],
  [/(tools\[|definition\().*strict$/, false, "schemas of tools bind nobody unless asked"],
  [/(detail|context|service_tier|context_compression)$/, "auto", "the server's choice"],
  [/(function_call|tool_choice)$/, "auto", "the model's choice, which is the default"],
  [/modalities$/, ["text"], "text is what every model gives"],
  [/format(\(text\))?$/, { type: "text" }, "text is what every model gives"],
  [/configuration_update\]\.text$/, { format: { type: "text" } }, "text is what every model gives"],
  [/allowed_callers$/, ["direct"], "the model calls tools itself"],
  [/caller\(direct\)$/, { type: "direct" }, "the model called it itself"],
  [/(tools\[custom\]|definition\(custom\))\.type$/, "custom", "the type of a tool without a type"],
  [/input\[message:[^\]]*\]\.type$/, "message", "the type of an item without a type"],
  [/environment\(local\)$/, { type: "local" }, "the client's own machine"],
  [/user_location\(approximate\)\.type$/, "approximate", "the only type there is"],
  [/WebSearch[^.]*\.type$/, undefined, "dated names of one tool"],
  [/^thinking\(adaptive\)$/, { type: "adaptive" }, "a model that reasons does so unasked"],
  [/^thinking\(.*display$/, "summarized", "the default of a request that names none"],
  [/oversized_image$/, "downsize", "the default"],
  [/\[thinking\]\.thinking$/, undefined, "the sealed original counts, not the client's copy"],
];

function happensAnyway(path: string, value: unknown): boolean {
  return ANYWAY.some(
    ([end, same]) => end.test(path) && (same === undefined || JSON.stringify(same) === JSON.stringify(value)),
  );
}

/** A form's name among its alternatives: its tag, with its type if several share the tag. */
function nameOf(form: ObjectForm, forms: readonly ObjectForm[]): string {
  const same = forms.filter((one) => one.tag === form.tag);
  if (forms.length === 1) return form.tag ?? "";
  return same.length > 1 ? [form.tag, form.name].filter((part) => part).join(":") : (form.tag ?? form.name);
}

function built(way: readonly Step[], value: unknown): Json {
  const [first, ...rest] = way;
  if (!first) return {};
  const object = least(first.form, first.path);
  const last = rest.length === 0;
  const inner = last ? value : built(rest, value);
  if (inner === undefined) {
    const { [first.member.name]: _, ...without } = object;
    return without;
  }
  return { ...object, [first.member.name]: !last && first.isListed ? [inner] : inner };
}
