/** Texts of the owner's pages. */
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
    suspended: "Your account is suspended. Until your operator resumes it, you can see everything but change nothing.",
    closed: "Your account is closed. You can see everything but change nothing.",
  },
  signIn: {
    linkOpened: "You have opened a sign-in link. It works once.",
    enter: "Sign in",
    signedOut: "You are not signed in.",
    askOperator: "Or ask the operator of this gateway for a sign-in link.",
    byPasskey: "Sign in with a passkey",
    byProvider: (label: string) => `Sign in with ${label}`,
    byFront: (name: string) => `Continue as ${name}`,
    refused: {
      oidc_over: "This sign-in was started in another window, was already used, or took too long. Start again.",
      oidc_refused: "The provider did not confirm your identity.",
      oidc_no_account: "There is no account with the name that the provider has for you. Ask your operator for one.",
      oidc_unreachable: "The provider does not answer. Try again in a moment.",
      claim_missing: "The provider did not send the name of your account. Ask your operator.",
      claim_no_name: "The name that the provider sent is not a valid account name. Ask your operator.",
      email_unverified: "The provider has not verified your email address. Verify it there, then start again.",
      too_many_attempts: "Too many sign-in attempts came from your address. Wait a minute.",
      too_many_sign_ins: "There were too many sign-ins in the last minutes. Wait a minute, then start again.",
    },
    refusedOtherwise: "Sign-in failed. Start again, or ask your operator.",
  },
  access: {
    title: "Access",
    passkeys: "Passkeys",
    passkeysHint: "With a passkey you sign in with your fingerprint, your face or your device's PIN, without a link.",
    noPasskeys:
      "No passkey yet. Without one, you need a new link from your operator or another sign-in method of the sign-in page.",
    add: "Add a passkey",
    goOn: "Continue",
    name: "Name",
    nameHint: "A name to recognize it. Your browser asks for the rest.",
    suggestedName: "This device",
    synced: "synced",
    added: "Added",
    used: "Last used",
    change: "Change",
    rename: "Rename",
    renameOne: (name: string) => `Rename ${name}`,
    remove: "Remove",
    removeOne: (name: string) => `Remove ${name}`,
    removeWarning:
      "Nobody can sign in with it any more. Sessions that were started with it continue until you end them.",
    alreadyHere: "This device already has a passkey of your account.",
    notGiven: "The browser did not return a passkey.",
    notGivenRemedy: "The request was canceled, took too long, or there is no passkey for this address.",
    sessions: "Running sessions",
    browser: "Browser",
    thisOne: "this session",
    method: "Signed in by",
    methods: { link: "Link", passkey: "Passkey", oidc: "OpenID Connect", front: "Front", token: "Token" },
    from: "From",
    begun: "Started",
    ends: "Ends",
    end: "End",
    endOne: (begun: string) => `End the session started at ${begun}`,
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
