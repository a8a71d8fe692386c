/** Texts of both sets of pages. */
import { attempts } from "./attempts.ts";
import { explained } from "./explained.ts";
import { refusals } from "./refusals.ts";
import { requestCauses } from "./request-causes.ts";

export const common = {
  loading: "Loading …",
  working: "Working …",
  tryAgain: "Try again",
  close: "Close",
  cancel: "Cancel",
  copy: "Copy",
  copied: "Copied",
  more: "Show more",
  none: "None",
  never: "Never",
  language: "Language",
  signOut: "Sign out",
  sessionEnded: "Your session has ended. Sign in again to return to this page.",
  menu: "Menu",
  skip: "Skip to the content",
  unreachable: "The gateway does not answer.",
  unreachableRemedy: "Check the connection and try again. A repeated request counts only once.",
  failed: "This page could not be shown.",
  refusals,
  attempts,
  requestCauses,
  explained,
  notFound: "There is no such page.",
  home: "To the overview",
  time: "Time",
  badSpan: "Choose a first day that is not after the last one.",
  csv: "Download CSV",
  colon: ": ",
  usd: (amount: string) => `${amount} USD`,
};
