/**
 * `GET /admin/v1/store` and `POST /admin/v1/store/confirm`: whether the store has its history, what differs, and the
 * operator's confirmation that it is to be used as it is (docs/failure-model.md row B12). The caller provides the
 * state.
 */

import { COMMAND } from "../../values/program/program.ts";
import { StoreShape } from "../answers/answers.ts";
import { AdminRefusal } from "../refusal.ts";
import type { StoreOperations } from "../store-operations.ts";
import { closed, Type } from "../vocabulary.ts";
import { type ConsoleParts, type ConsoleRoute, route } from "./contract.ts";

/** An operator's confirmation that the store is to be used as it is. */
const StoreConfirmation = Type.Object(
  {
    confirm: Type.String({
      pattern: "^[0-9a-f]{12}$",
      description: "the 12 characters that tollgate store status shows",
      "x-remedy":
        "Check the state first (tollgate store status); it shows what to send, if there is anything to confirm.",
    }),
  },
  closed,
);

export function storeRoutes({ storeStatus, confirmStore }: ConsoleParts & StoreOperations): readonly ConsoleRoute[] {
  if (!storeStatus || !confirmStore) return [];
  return [
    route({
      method: "GET",
      path: "/store",
      id: "showStore",
      summary: "Show whether the store has all of its data",
      answers: { 200: StoreShape },
      handle: async () => ({ status: 200, body: await storeStatus() }),
    }),
    route({
      method: "POST",
      path: "/store/confirm",
      id: "confirmStore",
      summary: "Use a store that lost data as it is",
      answers: { 200: StoreShape },
      refusals: { 409: "`store_changed`." },
      body: StoreConfirmation,
      write: {
        what: "store.confirm",
        target: ({ body }) => body.confirm,
        whenUnknown: `Confirm again if the state still asks for it; to check: ${COMMAND} store status`,
      },
      async handle({ body }) {
        const outcome = await confirmStore(body.confirm);
        if (outcome === "changed") throw changed();
        return { status: 200, body: await storeStatus(), repeated: outcome === "nothing" };
      },
    }),
  ];
}

function changed(): AdminRefusal {
  return new AdminRefusal(
    409,
    "store_changed",
    "The store no longer has the state that was to be confirmed; nothing was changed.",
    `Confirm the current state: ${COMMAND} store status`,
  );
}
