/** `GET /admin/v1/upstreams`: the state of each upstream, which the gateway provides. */
import { type UpstreamAnswer, UpstreamList } from "../answers/answers.ts";
import { type ConsoleParts, type ConsoleRoute, route } from "./contract.ts";

/** The current state of one upstream. */
export interface UpstreamState {
  readonly name: string;
  /** `probe`: its ejection is over, and the next request decides. */
  readonly health: "healthy" | "probe" | "ejected";
  /** Why it is not healthy. */
  readonly reason: string | undefined;
  /** Remaining ejection, in milliseconds. */
  readonly restMs: number;
  readonly inFlight: number;
  readonly maxConcurrency: number;
  readonly queued: number;
  /** Models that it has rate-limited (429), by their names at the upstream, with the remaining milliseconds. */
  readonly limitedModels: ReadonlyMap<string, number>;
  /** Outcomes of attempts within its window, by kind. */
  readonly outcomes: Readonly<Record<string, number>>;
}

export interface UpstreamWatcher {
  readonly upstreams?: () => readonly UpstreamState[];
}

export function upstreamRoutes({ upstreams }: ConsoleParts & UpstreamWatcher): readonly ConsoleRoute[] {
  if (!upstreams) return [];
  return [
    route({
      method: "GET",
      path: "/upstreams",
      id: "listUpstreams",
      summary: "Show the state of each upstream at this process",
      answers: { 200: UpstreamList },
      async handle() {
        return { status: 200, body: { items: upstreams().map(showUpstream) } };
      },
    }),
  ];
}

function showUpstream(state: UpstreamState): UpstreamAnswer {
  return {
    name: state.name,
    health: state.health,
    reason: state.reason ?? null,
    rest_seconds: seconds(state.restMs),
    in_flight: state.inFlight,
    max_concurrency: state.maxConcurrency,
    queued: state.queued,
    outcomes: state.outcomes,
    limited_models: [...state.limitedModels].map(([model, ms]) => ({ model, rest_seconds: seconds(ms) })),
  };
}

function seconds(ms: number): number {
  return Math.ceil(ms / 1_000);
}
