/** `GET /admin/v1/version`: the version of the program and of its configuration. */
import { type VersionAnswer, VersionShape } from "../answers/answers.ts";
import { type ConsoleRoute, route } from "./contract.ts";

export interface Identity {
  /** The running version; a reload increments the generation. */
  readonly running?: () => VersionAnswer;
}

export function versionRoutes({ running }: Identity): readonly ConsoleRoute[] {
  if (!running) return [];
  return [
    route({
      method: "GET",
      path: "/version",
      id: "showVersion",
      summary: "Show the version of the program and of its configuration",
      answers: { 200: VersionShape },
      handle: async () => ({ status: 200, body: running() }),
    }),
  ];
}
