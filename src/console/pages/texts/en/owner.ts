/** Words of the owner's pages. */
import { errorWords } from "./owner/error-words.ts";
import { help } from "./owner/help.ts";
import { models } from "./owner/models.ts";
import { tryIt } from "./owner/try.ts";
import { request, usage } from "./owner/usage.ts";

export const owner = {
  door: {
    linkOpened: "You have opened a sign-in link. It works once.",
    enter: "Sign in",
    signedOut: "You are not signed in.",
    askOperator: "Ask whoever runs this gateway for a sign-in link.",
  },
  overview: {
    title: "Overview",
    balance: "Balance",
    held: "Held",
    heldHint: "By requests that are running",
  },
  usage,
  request,
  models,
  tryIt,
  help,
  errorWords,
};
