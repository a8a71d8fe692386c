/** `GET /admin/v1/version`: the program that answers, and its configuration. */
import { type VersionAnswer, VersionShape } from "../answers/answers.ts";
import { type ConsoleRoute, route } from "./contract.ts";

export interface Identity {
  /** What runs, as of this instant: a reload counts the generation up. */
  readonly running?: () => VersionAnswer;
}

export function versionRoutes({ running }: Identity): readonly ConsoleRoute[] {
  if (!running) return [];
  return [
    route({
      method: "GET",
      path: "/version",
      id: "showVersion",
      summary: "Version of the program that answers, and of its configuration",
      answers: { 200: VersionShape },
      handle: async () => ({ status: 200, body: running() }),
    }),
  ];
}
