/** Texts of the Overview page. */
export const overview = {
  title: "Overview",
  balance: "Balance",
  held: "Held",
  heldHint: "By running requests",
  available: "Available",
  availableHint: "Balance minus holds",
  today: "Spent today",
  todayHint: "UTC day",
  month: "Spent in 30 days",
  statuses: {
    suspended: "This account is suspended: all of its keys are refused. Ask the operator of this gateway.",
    closed: "This account is permanently closed: none of its keys works, and nothing can be added to it.",
  },
  soon: "About to run out",
  warnings: {
    balance: (rest: string, below: string) =>
      `The balance is ${rest}, below ${below}. Ask the operator of this gateway for a top-up.`,
    cardEnd: (card: string, ends: string) =>
      `The time card ${card} ends ${ends}, and no other card of its group follows.`,
    cardEndFollowed: (card: string, ends: string) =>
      `The time card ${card} ends ${ends}. Another card of its group follows.`,
    cardQuota: (card: string, rest: string, limit: string) => `The time card ${card} has ${rest} of ${limit} left.`,
    accountBudget: (span: string, rest: string, limit: string) =>
      `This account’s budget ${span} has ${rest} of ${limit} left.`,
    keyBudget: (key: string, span: string, rest: string, limit: string) =>
      `The budget ${span} of the key ${key} has ${rest} of ${limit} left.`,
    keyEnd: (key: string, ends: string) => `The key ${key} expires ${ends}.`,
    anew: (when: string) => `It resets ${when}.`,
    unnamed: "without a name",
  },
  spans: { day: "per day", week: "per week", month: "per month", total: "in total" },
  spend: "The last 30 days",
  spendPicture: (total: string, since: string, until: string) =>
    `Bar chart: amount spent on each day from ${since} to ${until}, ${total} in total. The table below has the figures.`,
  asTable: "As a table",
  day: "Day (UTC)",
  spent: "Spent",
  requests: "Requests",
  noSpend: "Nothing was spent in the last 30 days.",
  cards: "Time cards",
  noCards: "No time card is running or waiting.",
  toCards: "Redeem a code or see all cards",
  budgets: "Budgets of this account",
  models: "Models",
  noModels: "This account’s plan has no models.",
  allUp: (count: number) => (count === 1 ? "The model is up." : `All ${count} models are up.`),
  someInTrouble: (count: number) =>
    count === 1
      ? "A model is in trouble: requests for it may fail."
      : `${count} models are in trouble: requests for them may fail.`,
  up: "Up",
  trouble: "In trouble",
};
