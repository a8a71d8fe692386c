/** `GET /admin/v1/configuration`: the settings in force, and the reasons why the last refused reload was refused. */
import { Secret } from "../../values/secret.ts";
import { ConfigurationShape } from "../answers/live.ts";
import type { SettingsInForce } from "../reloads.ts";
import { type ConsoleParts, type ConsoleRoute, route } from "./contract.ts";

export interface Configured {
  readonly configuration?: () => SettingsInForce;
}

export function configurationRoutes({ configuration }: ConsoleParts & Configured): readonly ConsoleRoute[] {
  if (!configuration) return [];
  return [
    route({
      method: "GET",
      path: "/configuration",
      id: "showConfiguration",
      summary: "Show the configuration in force, without secrets, and the last refused reload",
      answers: { 200: ConfigurationShape },
      async handle() {
        const { settings, generation, sinceMs, restart, refused } = configuration();
        const body = {
          generation,
          since: new Date(sinceMs).toISOString(),
          settings: plain(settings),
          waiting_for_restart: restart,
          refused: refused ? { at: new Date(refused.atMs).toISOString(), problems: refused.problems } : null,
        };
        return { status: 200, body };
      },
    }),
  ];
}

/** Longer texts are certificates. */
const TEXT_CHARS_MAX = 512;

/** Settings as JSON: secrets as `***`, without unset ones. */
function plain(value: unknown): unknown {
  if (value instanceof Secret) return String(value);
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value === "string") return shown(value);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, plain(one)]));
}

/** Masks credentials in URLs. */
function shown(text: string): string {
  if (text.length > TEXT_CHARS_MAX) return `${text.slice(0, 27)}… (${text.length} characters)`;
  return text.replace(/\/\/[^/@\s]+@/g, "//***@");
}
