/** The forms of the admin API's answers about the current state: live figures, and the configuration in force. */

import { type Static, Type } from "../vocabulary.ts";
import { anything, count, instant, list, object, orNull, text, usd } from "./shape.ts";

const rate = (description: string, example: number) => Type.Number({ description, examples: [example] });

export const LiveShape = object("LiveSnapshot", {
  at: instant("When it was taken."),
  requests_per_second: rate("Requests answered per second since the previous snapshot; 0 in the first one.", 12.5),
  in_flight: count("Requests that are being answered.", 3),
  queued: count("Requests in the queues of upstreams.", 0),
  window_seconds: rate(
    "The span of the figures below: the last minute, or the time since the first watcher connected if that is shorter.",
    60,
  ),
  requests: count("Requests answered in this span.", 750),
  first_tokens: count("Streams in this span that reached their first token.", 700),
  first_token_p50_ms: orNull(rate("Median time to the first token; null without streams.", 420)),
  first_token_p95_ms: orNull(
    rate("The 95th percentile of it; both are computed from the buckets of the metric.", 1900),
  ),
  refusals: list(
    object("LiveRefusals", {
      cause: text("The cause, as in docs/errors.md.", "insufficient_balance"),
      requests: count("Requests refused for it.", 4),
    }),
  ),
  spend: list(
    object("LiveSpend", {
      group: text("The group.", "big"),
      usd: usd("What was charged in this span, to a millionth; the ledger has the exact amount", "1.25"),
    }),
  ),
  journal_fill: rate("Share of journal.bytes_max in use; at 0.8 new requests are refused.", 0.01),
  unsettled: count("Charges that the store has not acknowledged yet.", 0),
});
export type LiveAnswer = Static<typeof LiveShape>;

export const ConfigurationShape = object("Configuration", {
  generation: count("The number of the configuration in force; 1 is the one loaded at the start.", 1),
  since: instant("When it came into force."),
  settings: anything("All settings, including defaults, by the names and in the units of the file. Secrets are `***`."),
  waiting_for_restart: list(text("A setting whose new value takes effect after a restart.", "listen")),
  refused: orNull(
    object("RefusedConfiguration", {
      at: instant("When the last reload was refused. The configuration in force did not change."),
      problems: list(
        object("ConfigurationProblem", {
          file: text("The file.", "tollgate.yaml"),
          line: count("The line, from 1.", 12),
          column: count("The column, from 1.", 5),
          key: text("The setting; empty for the file as a whole.", "models.big-1.price"),
          message: text("What is wrong with it.", "must be an amount"),
        }),
      ),
    }),
  ),
});
export type ConfigurationAnswer = Static<typeof ConfigurationShape>;
