/**
 * Replaces `${NAME}` in strings and `file:/path` in secrets, before the schema is checked. Messages never show the
 * replacement: they name the variable or the path.
 */

import { isSecret } from "./check.ts";
import { LIMITS } from "./defaults.ts";
import type { ConfigDocument } from "./document.ts";
import type { ConfigPath } from "./problems.ts";
import type { TSchema } from "./schema/words.ts";

/** Where references are read from. `readFile` returns a file's text, or throws as `node:fs` does. */
export interface Sources {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly readFile: (path: string) => string;
}

/**
 * `$NAME` alone or after an authentication scheme, as in a shell. It is not replaced, so it would be sent to a server
 * as it is. Lowercase names are not matched, because passwords may begin with a dollar sign.
 */
const VARIABLE_OF_A_SHELL = /^(?:(?:bearer|basic|token|api-?key)\s+)?\$(?-i:[A-Z_][A-Z0-9_]*)$/i;

/**
 * Whether a string is the name of a passed member, or something that a rule sets or adds. Only the upstream knows what
 * it means.
 */
function isForServers(path: ConfigPath): boolean {
  return path.includes("pass_members") || path.some((part, i) => part === "rules" && typeof path[i + 1] === "number");
}

/** Replaces the references in every string of the document. A reference that cannot be resolved is a problem. */
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
      // The text is not shown: it may be a password.
      document.problems.add(
        path,
        "a variable is written with braces, $" + "{NAME}; put a value that begins with $ into a variable",
      );
      return "";
    }
    const filled = fromEnvironment(text, path);
    if (document.problems.has(path) || !filled.startsWith("file:") || !isSecret(schema, path)) return filled;
    return fromFile(filled.slice("file:".length), path);
  }

  function fromEnvironment(text: string, path: ConfigPath): string {
    // `$${` stands for a literal `${`.
    return text.replace(/\$\$\{|\$\{([^}]*)\}?/g, (found: string, name: string | undefined) => {
      if (found === "$${") return "${";
      if (name === undefined || !/^[A-Za-z_][A-Za-z0-9_]*$/.test(name) || !found.endsWith("}")) {
        document.problems.add(path, "a reference is written $" + "{NAME}; write $$" + "{ for a literal $" + "{");
        return "";
      }
      const value = sources.env[name];
      if (value === undefined || value === "") {
        const state = value === "" ? "is empty" : "is not set";
        document.problems.add(path, `the environment variable ${name} ${state}; set it, or remove the reference`);
        return "";
      }
      return value;
    });
  }

  function fromFile(file: string, path: ConfigPath): string {
    // The path may itself come from the environment, so the message shows it as written.
    const name = (document.writtenAt(path) ?? "the file").replace(/^file:/, "");
    try {
      const text = sources.readFile(file);
      if (Buffer.byteLength(text) > LIMITS.secretBytesMax) {
        document.problems.add(
          path,
          `the file ${name} is larger than ${LIMITS.secretBytesMax} bytes, too large for a secret`,
        );
        return "";
      }
      // Editors and `echo` end a file with a newline, which is not part of the secret.
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
