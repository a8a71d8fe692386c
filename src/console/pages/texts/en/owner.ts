/** Words of the owner's pages. */
import { cards } from "./owner/cards.ts";
import { errorWords } from "./owner/error-words.ts";
import { help } from "./owner/help.ts";
import { keys } from "./owner/keys.ts";
import { models } from "./owner/models.ts";
import { overview } from "./owner/overview.ts";
import { tryIt } from "./owner/try.ts";
import { request, usage } from "./owner/usage.ts";

export const owner = {
  mayOnlyLook: {
    suspended:
      "Your account is suspended. Until your operator resumes it you can look at everything, and change nothing.",
    closed: "Your account is closed. You can look at everything, and change nothing.",
  },
  door: {
    linkOpened: "You have opened a sign-in link. It works once.",
    enter: "Sign in",
    signedOut: "You are not signed in.",
    askOperator: "Otherwise ask whoever runs this gateway for a sign-in link.",
    byPasskey: "Sign in with a passkey",
    byProvider: (label: string) => `Sign in with ${label}`,
    byFront: (name: string) => `Go on as ${name}`,
    refused: {
      oidc_over: "This sign-in was begun in another window, was used, or took too long. Begin again.",
      oidc_refused: "The provider has not confirmed who you are.",
      oidc_no_account: "There is no account under the name that the provider gives you. Ask your operator for one.",
      oidc_unreachable: "The provider does not answer. Try again in a moment.",
      claim_missing: "The provider does not say by what name your account goes. Ask your operator.",
      claim_no_name: "What the provider says is no name that an account can have. Ask your operator.",
      email_unverified: "The provider has not verified your e-mail address. Verify it there, and begin again.",
      too_many_attempts: "Too many attempts to sign in came from your address. Wait for a minute.",
      too_many_sign_ins: "There were too many sign-ins in the last minutes. Wait for a minute, and begin again.",
    },
    refusedOtherwise: "Signing in did not work. Begin again, or ask your operator.",
  },
  access: {
    title: "Access",
    passkeys: "Passkeys",
    passkeysHint: "A passkey lets you in with your fingerprint, your face or your device's PIN, without a link.",
    noPasskeys:
      "No passkey yet: without one you need a new link from your operator, or another way that the sign-in page offers.",
    add: "Add a passkey",
    goOn: "Go on",
    name: "Name",
    nameHint: "By which you know it again. Your browser asks you for the rest.",
    suggestedName: "This device",
    synced: "synced",
    added: "Added",
    used: "Last used",
    change: "Change",
    rename: "Rename",
    renameOne: (name: string) => `Rename ${name}`,
    remove: "Remove",
    removeOne: (name: string) => `Remove ${name}`,
    removeWarning: "It lets nobody in any more. Sessions that it has begun go on until you end them.",
    alreadyHere: "This device has a passkey of your account already.",
    notGiven: "Your browser gave no passkey.",
    notGivenRemedy: "It was cancelled, took too long, or there is none for this address.",
    sessions: "Running sessions",
    browser: "Browser",
    thisOne: "this one",
    way: "Signed in by",
    ways: { link: "Link", passkey: "Passkey", oidc: "OpenID Connect", front: "Front", token: "Token" },
    from: "From",
    begun: "Begun",
    ends: "Ends",
    end: "End",
    endOne: (begun: string) => `End the session begun at ${begun}`,
    endOthers: "End all others",
  },
  overview,
  keys,
  cards,
  usage,
  request,
  models,
  tryIt,
  help,
  errorWords,
};
