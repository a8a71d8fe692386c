/** The translations of whole replies in both ways, judged member by member. */
import { PROTOCOL_NAMES, type Protocol } from "../../../src/values/protocol.ts";
import { ReplyTrial } from "./answered.ts";
import { Judge } from "./judge.ts";
import { type Direction, rootsOf, unique } from "./requests.ts";
import type { ObjectForm } from "./walk.ts";

const ROOTS: Readonly<Record<Protocol, readonly ObjectForm[]>> = {
  chat: rootsOf("chat reply"),
  messages: [...rootsOf("messages beta reply"), ...rootsOf("messages reply")],
  responses: rootsOf("responses reply"),
};

/** The six directions of replies, from the server's protocol to the client's. */
export function judgedReplies(): readonly Direction[] {
  return PROTOCOL_NAMES.flatMap((upstream) =>
    PROTOCOL_NAMES.filter((client) => client !== upstream).map((client) => ({
      client,
      upstream,
      judged: unique(ROOTS[upstream].flatMap((root) => new Judge(new ReplyTrial(upstream, client)).root(root))),
    })),
  );
}
