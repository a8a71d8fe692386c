/** Time cards of an account: list them, and give one without a code. */
import { giftId } from "../../values/code.ts";
import { KeyedQueue } from "../../values/collections/keyed-queue.ts";
import { CardList, GiftShape } from "../answers/answers.ts";
import { showCards, showEntitlement } from "../answers/present.ts";
import { accountNamed } from "../named-accounts.ts";
import { AdminRefusal, accountClosed, noSuchAccount } from "../refusal.ts";
import { AccountPath, Configured, closed, type Static, Type } from "../vocabulary.ts";
import { worthOf } from "./codes.ts";
import { type ConsoleAnswer, type ConsoleParts, type ConsoleRoute, route } from "./contract.ts";

const NewGift = Type.Object(
  {
    card: Configured,
    id: Type.Optional(
      Type.String({
        pattern: "^[A-Za-z0-9][A-Za-z0-9._:@+/=-]{0,127}$",
        description: "your id for this gift: 1 to 128 characters of A-Z a-z 0-9 . _ : @ + / = -",
        "x-remedy": "Send the same id when you repeat a request. Without an id, each request gives another card.",
        examples: ["sorry-4711"],
      }),
    ),
  },
  closed,
);

export function cardRoutes(parts: ConsoleParts): readonly ConsoleRoute[] {
  const turns = new KeyedQueue<ConsoleAnswer<GiftAnswer>>();
  return [
    route({
      method: "GET",
      path: "/accounts/:name/cards",
      id: "listCards",
      summary: "List an account's time cards in the order in which they pay, with the card that follows each",
      description:
        "Includes cards that have ended. Such a card is removed when the account gets another card two days or more after its end.",
      answers: { 200: CardList },
      refusals: { 404: "`unknown_account`." },
      params: AccountPath,
      async handle({ params }) {
        const { tag, name } = await accountNamed(parts.store, params.name);
        const found = await parts.store.listCards(tag, true);
        if (found === undefined) throw noSuchAccount(name);
        return { status: 200, body: { account: name, items: showCards(found.cards, found.storeTimeMs) } };
      },
    }),
    route({
      method: "POST",
      path: "/accounts/:name/gifts",
      id: "giveCard",
      summary: "Give an account a time card of a configured kind, without a code",
      description: "Idempotent by your `id`. Without one, each request gives another card.",
      answers: { 201: GiftShape, 200: GiftShape },
      refusals: { 404: "`unknown_account`.", 409: "`id_used`: for a card of another kind. `account_closed`." },
      params: AccountPath,
      body: NewGift,
      write: {
        what: "card.gift",
        target: ({ params }) => params.name,
        facts: ({ body: { card, id } }) => ({ card, ...(id === undefined ? {} : { id }) }),
        whenUnknown:
          "With an id, repeat the request: it gives only one card. Without one, check the account's cards first.",
      },
      handle: ({ params, body }) => turns.of(params.name, () => give(parts, params.name, body.card, body.id)),
    }),
  ];
}

type GiftAnswer = Static<typeof GiftShape>;

/** Gives a card with the present terms of its kind. A repeated request returns the card that was given first. */
async function give(
  parts: ConsoleParts,
  name: string,
  kind: string,
  asked: string | undefined,
): Promise<ConsoleAnswer<GiftAnswer>> {
  const { starts, ...worth } = worthOf(parts, kind);
  const { tag, status } = await accountNamed(parts.store, name);
  const id = giftId(tag, asked, parts.random);
  const before = (await parts.store.readFigures(tag, { cards: [id] }))?.cards.get(id);
  if (before !== undefined && before.card !== kind) throw givenBefore(asked ?? id, before.card);
  if (before === undefined && status === "closed") throw accountClosed(name);
  const given = {
    ...worth,
    id,
    reference: asked ?? id,
    afterPrevious: starts === "after_previous",
    gift: true,
  } as const;
  const entitlement = await parts.store.grant(tag, given);
  if (entitlement === undefined) throw noSuchAccount(name);
  // Another gateway has given a card of another kind under this id in the meantime.
  if (entitlement.card !== kind) throw givenBefore(asked ?? id, entitlement.card);
  const repeated = before !== undefined;
  const body = { account: name, card: kind, entitlement: showEntitlement(entitlement), repeated };
  return { status: repeated ? 200 : 201, body, repeated, audit: { card_id: id } };
}

function givenBefore(id: string, kind: string | undefined): AdminRefusal {
  return new AdminRefusal(
    409,
    "id_used",
    `The id \`${id}\` was already used for a card of the kind \`${kind ?? "-"}\`; nothing was changed.`,
    "Send another id, or leave it out.",
  );
}
