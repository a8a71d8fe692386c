/**
 * `${NAME}` inside texts and `file:/path` for secrets, filled in before the schema looks. What comes in this way is never
 * repeated by a message: problems name the variable or the path.
 */

import { isSecret } from "./check.ts";
import { LIMITS } from "./defaults.ts";
import type { ConfigDocument } from "./document.ts";
import type { ConfigPath } from "./problems.ts";
import type { TSchema } from "./schema/words.ts";

/** Where texts come from; `readFile` gives a file's text or throws as `node:fs` does. */
export interface Sources {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly readFile: (path: string) => string;
}

/**
 * `$NAME` and nothing else, or behind the scheme of a credential, as a shell would fill it in: it would go to a server as it stands.
 * Small letters are left alone, as passwords may begin with a dollar.
 */
const VARIABLE_OF_A_SHELL = /^(?:(?:bearer|basic|token|api-?key)\s+)?\$(?-i:[A-Z_][A-Z0-9_]*)$/i;

/** Whether a text is a member's name, or what a rule sets or adds: what that means is a model server's to say. */
function isForServers(path: ConfigPath): boolean {
  return path.includes("pass_members") || path.some((part, i) => part === "rules" && typeof path[i + 1] === "number");
}

/** Replaces references in every text of the document; each that leads nowhere is a problem. */
export function expandReferences(document: ConfigDocument, schema: TSchema, sources: Sources): void {
  visit(document.value, []);

  function visit(value: unknown, path: ConfigPath): void {
    if (typeof value !== "object" || value === null) return;
    for (const [key, member] of Object.entries(value)) {
      const at = [...path, Array.isArray(value) ? Number(key) : key];
      if (typeof member === "string") (value as Record<string, unknown>)[key] = expanded(member, at);
      else visit(member, at);
    }
  }

  function expanded(text: string, path: ConfigPath): string {
    if (VARIABLE_OF_A_SHELL.test(text) && (isSecret(schema, path) || !isForServers(path))) {
      // The text is not repeated: it may be a password after all.
      document.problems.add(
        path,
        "a variable is written with braces, $" + "{NAME}; a value that itself begins with $ comes from one",
      );
      return "";
    }
    const filled = fromEnvironment(text, path);
    if (document.problems.has(path) || !filled.startsWith("file:") || !isSecret(schema, path)) return filled;
    return fromFile(filled.slice("file:".length), path);
  }

  function fromEnvironment(text: string, path: ConfigPath): string {
    // `$${` is written for a literal `${`.
    return text.replace(/\$\$\{|\$\{([^}]*)\}?/g, (found: string, name: string | undefined) => {
      if (found === "$${") return "${";
      if (name === undefined || !/^[A-Za-z_][A-Za-z0-9_]*$/.test(name) || !found.endsWith("}")) {
        document.problems.add(
          path,
          "a reference is written $" + "{NAME}; $$" + "{ stands for the characters themselves",
        );
        return "";
      }
      const value = sources.env[name];
      if (value === undefined || value === "") {
        const state = value === "" ? "is empty" : "is not set";
        document.problems.add(path, `the environment variable ${name} ${state}; set it, or take the reference out`);
        return "";
      }
      return value;
    });
  }

  function fromFile(file: string, path: ConfigPath): string {
    // The path itself may come from the environment, so the message shows it as written.
    const name = (document.writtenAt(path) ?? "the file").replace(/^file:/, "");
    try {
      const text = sources.readFile(file);
      if (Buffer.byteLength(text) > LIMITS.secretBytesMax) {
        document.problems.add(path, `the file ${name} is larger than ${LIMITS.secretBytesMax} bytes: not a secret`);
        return "";
      }
      // Editors and `echo` end a file with a newline that is not part of the secret.
      const secret = text.replace(/\r?\n$/, "");
      if (secret === "") document.problems.add(path, `the file ${name} is empty; a secret was expected`);
      return secret;
    } catch (error) {
      const code = (error as NodeJS.ErrnoException).code ?? "unreadable";
      document.problems.add(path, `the file ${name} cannot be read (${code}); a secret was expected`);
      return "";
    }
  }
}
