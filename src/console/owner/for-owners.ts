/**
 * Adapts the admin API's routes to owners. An answer is reduced to the members that its form names, so that a member
 * which is added for operators does not reach owners automatically. Remedies address a person without a command line.
 */
import { OwnAccountShape } from "../answers/own.ts";
import { AdminRefusal } from "../refusal.ts";
import type { ConsoleRoute } from "../routes/contract.ts";
import type { TSchema } from "../vocabulary.ts";

/** Forms with fewer members than the admin's, by the route's id. */
const LESS: Readonly<Record<string, Readonly<Record<number, TSchema>>>> = { showAccount: { 200: OwnAccountShape } };

/** What an owner can do, by the refusal's code, if the admin API's own remedy is for operators. */
const REMEDIES: Readonly<Record<string, string>> = {
  above_cap: "Lower it to the cap, or ask the operator to raise the cap.",
  account_closed: "Ask the operator of this gateway for another account.",
  code_not_redeemable:
    "Compare it with the code that you got, character by character. The seller can look up its state.",
  expired_code: "Ask the seller for another code.",
  key_exists: "If that key was lost, revoke it and create another.",
  unknown_account: "Reload the page: you may have signed in to another account in the meantime.",
  unknown_key: "Go back to your keys: this key is not one of them.",
};

export function forOwners(route: ConsoleRoute): ConsoleRoute {
  const answers = LESS[route.id] ?? route.answers;
  return {
    ...route,
    answers,
    async handle(input) {
      try {
        const answer = await route.handle(input);
        return { ...answer, body: cutTo(answers[answer.status], answer.body) };
      } catch (error) {
        throw error instanceof AdminRefusal ? inOwnersWords(error) : error;
      }
    },
  };
}

function inOwnersWords(refusal: AdminRefusal): AdminRefusal {
  const { status, code, message, remedy, headers } = refusal;
  return new AdminRefusal(status, code, message, REMEDIES[code] ?? remedy, headers);
}

/** The part of a schema that is read here. */
interface Form {
  readonly properties?: Readonly<Record<string, Form>>;
  readonly items?: Form;
}

function cutTo(form: Form | undefined, value: unknown): unknown {
  if (Array.isArray(value)) return form?.items ? value.map((one) => cutTo(form.items, one)) : value;
  if (typeof value !== "object" || value === null || form?.properties === undefined) return value;
  const { properties } = form;
  const named = Object.entries(value).filter(([name]) => Object.hasOwn(properties, name));
  return Object.fromEntries(named.map(([name, one]) => [name, cutTo(properties[name], one)]));
}
