/** The forms of what the admin API answers about this instant: live figures, and the configuration in force. */

import { type Static, Type } from "../vocabulary.ts";
import { anything, count, instant, list, object, orNull, text, usd } from "./shape.ts";

const rate = (description: string, example: number) => Type.Number({ description, examples: [example] });

export const LiveShape = object("LiveSnapshot", {
  at: instant("When it was taken."),
  requests_per_second: rate("Requests answered since the snapshot before it; 0 in the first one.", 12.5),
  in_flight: count("Requests that are being answered.", 3),
  queued: count("Requests in line for an upstream.", 0),
  window_seconds: rate("The span of the figures below: the last minute, or as long as somebody has listened.", 60),
  requests: count("Requests answered in it.", 750),
  first_tokens: count("Streams of it that came to their first token.", 700),
  first_token_p50_ms: orNull(rate("Half of them came within so many milliseconds; null without any.", 420)),
  first_token_p95_ms: orNull(rate("And 95 of 100; both are read off the buckets of the metric.", 1900)),
  refusals: list(
    object("LiveRefusals", {
      cause: text("The cause, as in docs/errors.md.", "insufficient_balance"),
      requests: count("Requests refused for it.", 4),
    }),
  ),
  spend: list(
    object("LiveSpend", {
      group: text("The group.", "big"),
      usd: usd("What was charged in it, to a millionth; the ledger has it exactly", "1.25"),
    }),
  ),
  journal_fill: rate("Share of journal.bytes_max in use; at 0.8 new requests are refused.", 0.01),
  unsettled: count("Charges that the store has not acknowledged yet.", 0),
});
export type LiveAnswer = Static<typeof LiveShape>;

export const ConfigurationShape = object("Configuration", {
  generation: count("The configuration in force: 1 is the one of the start.", 1),
  since: instant("Since when it is in force."),
  settings: anything(
    "All settings with what they are by default, by the names and in the units of the file. Secrets are `***`.",
  ),
  waiting_for_restart: list(text("A setting whose new value counts from the next start on.", "listen")),
  refused: orNull(
    object("RefusedConfiguration", {
      at: instant("When the last reload was refused; what was in force stays so."),
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
