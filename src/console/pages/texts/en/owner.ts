/** Words of the owner's pages. */
import { cards } from "./owner/cards.ts";
import { keys } from "./owner/keys.ts";
import { overview } from "./owner/overview.ts";

export const owner = {
  door: {
    linkOpened: "You have opened a sign-in link. It works once.",
    enter: "Sign in",
    signedOut: "You are not signed in.",
    askOperator: "Ask whoever runs this gateway for a sign-in link.",
  },
  overview,
  keys,
  cards,
};
