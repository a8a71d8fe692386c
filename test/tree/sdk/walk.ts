/**
 * Reads the official SDKs' type declarations of a request, a reply or an event with the TypeScript compiler. There is
 * no hand-written list, so a member of a new version cannot be overlooked.
 */
import {
  API,
  type Checker,
  SymbolFlags,
  type Type,
  TypeFlags,
  type Symbol as TypeSymbol,
} from "typescript/unstable/sync";
import type { Roots } from "./roots.ts";

/** A form that a value may have. */
export type Form =
  | { readonly kind: "literal"; readonly value: string | number | boolean }
  | { readonly kind: "text" }
  | { readonly kind: "number" }
  /** Any JSON, such as a schema or a tool's arguments. */
  | { readonly kind: "data" }
  | { readonly kind: "list"; readonly of: readonly Form[] }
  | ObjectForm;

export interface ObjectForm {
  readonly kind: "object";
  /** The type's name in the SDK; empty if it has none. */
  readonly name: string;
  /**
   * The value by which a reader distinguishes it from the alternatives: its `type`, else its `role`. Undefined if it
   * has none.
   */
  readonly tag: string | undefined;
  readonly members: readonly Member[];
}

export interface Member {
  readonly name: string;
  readonly isOptional: boolean;
  /** Whether its value may be null. */
  readonly isNullable: boolean;
  readonly forms: readonly Form[];
}

/** The root types by their names in `Roots`. */
export function readSdkTypes(): Readonly<Record<keyof Roots, ObjectForm | readonly ObjectForm[]>> {
  const api = new API();
  try {
    const snapshot = api.updateSnapshot({ openProjects: ["tsconfig.json"] });
    const project = snapshot.getProjects()[0];
    if (!project) throw new Error("tsconfig.json opens no project");
    const roots = project.checker.resolveName("Roots", SymbolFlags.Interface, {
      document: `${import.meta.dirname}/roots.ts`,
      position: 0,
    });
    if (!roots) throw new Error("the roots were not found");
    return new Reader(project.checker).roots(project.checker.getDeclaredTypeOfSymbol(roots));
  } finally {
    api.close();
  }
}

class Reader {
  readonly #checker: Checker;
  readonly #objects = new Map<number, ObjectForm>();

  constructor(checker: Checker) {
    this.#checker = checker;
  }

  roots(type: Type): Record<keyof Roots, ObjectForm | readonly ObjectForm[]> {
    const roots = this.#checker.getPropertiesOfType(type).map((symbol) => {
      const forms = this.#forms(this.#typeOf(symbol)).filter((form) => form.kind === "object");
      if (forms.length === 0) throw new Error(`${symbol.name} was not understood`);
      return [symbol.name, forms.length === 1 ? forms[0] : forms];
    });
    return Object.fromEntries(roots);
  }

  #typeOf(symbol: TypeSymbol): Type {
    const type = this.#checker.getTypeOfSymbol(symbol);
    if (!type || type.isErrorType()) throw new Error(`${symbol.name} has no type`);
    return type;
  }

  #forms(type: Type): readonly Form[] {
    if (type.isUnionType()) return type.getTypes().flatMap((one) => this.#forms(one));
    const { flags } = type;
    if (flags & (TypeFlags.Undefined | TypeFlags.Null | TypeFlags.Void | TypeFlags.Never)) return [];
    if (type.isLiteralType() && typeof type.value !== "bigint") return [{ kind: "literal", value: type.value }];
    if (flags & (TypeFlags.String | TypeFlags.TemplateLiteral)) return [{ kind: "text" }];
    if (flags & TypeFlags.Number) return [{ kind: "number" }];
    // `(string & {})` allows other values than those of the list.
    if (type.isIntersectionType()) {
      const parts = type.getTypes();
      if (parts.some((part) => part.flags & TypeFlags.String)) return [{ kind: "text" }];
    }
    if (this.#checker.isArrayType(type)) {
      const [of] = this.#elements(type);
      return [{ kind: "list", of: of ? this.#forms(of) : [{ kind: "data" }] }];
    }
    if (type.isObjectType() || type.isIntersectionType()) return [this.#object(type)];
    if (flags & (TypeFlags.Unknown | TypeFlags.Any | TypeFlags.NonPrimitive)) return [{ kind: "data" }];
    throw new Error(`a type was not understood: ${this.#checker.typeToString(type)}`);
  }

  #elements(type: Type): readonly Type[] {
    return type.isTypeReference() ? this.#checker.getTypeArguments(type) : [];
  }

  #object(type: Type): Form {
    const known = this.#objects.get(type.id);
    if (known) return known;
    const properties = this.#checker.getPropertiesOfType(type);
    if (properties.length === 0 && this.#checker.getIndexInfosOfType(type).length > 0) return { kind: "data" };
    const name = type.getSymbol()?.name ?? "";
    const members: Member[] = [];
    const form = { kind: "object" as const, name: name.startsWith("__") ? "" : name, tag: undefined, members };
    // Set before its members, because a type may be recursive.
    this.#objects.set(type.id, form);
    for (const symbol of properties) {
      // What the SDK sends in another place is not a member of the body.
      const comment = symbol.getDocumentationComment(this.#checker);
      if (comment.startsWith("Header param:")) continue;
      const isOptional = (symbol.flags & SymbolFlags.Optional) !== 0;
      const of = this.#typeOf(symbol);
      const isNullable = of.isUnionType() && of.getTypes().some((one) => one.flags & TypeFlags.Null);
      members.push({ name: symbol.name, isOptional, isNullable: Boolean(isNullable), forms: this.#forms(of) });
    }
    Object.assign(form, { tag: tagOf(members) });
    return form;
  }
}

function tagOf(members: readonly Member[]): string | undefined {
  for (const name of ["type", "role"]) {
    const forms = members.find((member) => member.name === name)?.forms ?? [];
    const [only] = forms;
    if (forms.length === 1 && only?.kind === "literal" && typeof only.value === "string") return only.value;
  }
  return undefined;
}
