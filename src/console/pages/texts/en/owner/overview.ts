/** Words of the page Overview. */
export const overview = {
  title: "Overview",
  balance: "Balance",
  held: "Held",
  heldHint: "By requests that are running",
  available: "Available",
  availableHint: "Balance less what is held",
  today: "Spent today",
  todayHint: "The day is that of UTC",
  month: "Spent in 30 days",
  statuses: {
    suspended: "This account is suspended: all of its keys are refused. Ask whoever runs this gateway.",
    closed: "This account is closed for good: none of its keys works, and nothing can be added to it.",
  },
  soon: "About to run out",
  warnings: {
    balance: (rest: string, below: string) =>
      `The balance is ${rest}, below ${below}. Ask whoever runs this gateway for a top-up.`,
    cardEnd: (card: string, ends: string) =>
      `The time card ${card} ends ${ends}, and no other card of its group comes after it.`,
    cardEndFollowed: (card: string, ends: string) =>
      `The time card ${card} ends ${ends}. Another card of its group comes after it.`,
    cardQuota: (card: string, rest: string, limit: string) => `Of the time card ${card} ${rest} of ${limit} are left.`,
    accountBudget: (span: string, rest: string, limit: string) =>
      `Of this account’s budget ${span} ${rest} of ${limit} are left.`,
    keyBudget: (key: string, span: string, rest: string, limit: string) =>
      `Of the budget ${span} of the key ${key} ${rest} of ${limit} are left.`,
    keyEnd: (key: string, ends: string) => `The key ${key} expires ${ends}.`,
    anew: (when: string) => `It begins anew ${when}.`,
    unnamed: "without a name",
  },
  spans: { day: "of the day", week: "of the week", month: "of the month", total: "in all" },
  spend: "The last 30 days",
  spendPicture: (total: string, since: string, until: string) =>
    `Bars: what was spent on each day from ${since} to ${until}, ${total} in all. The table below has the figures.`,
  asTable: "As a table",
  day: "Day (UTC)",
  spent: "Spent",
  requests: "Requests",
  noSpend: "Nothing was spent in the last 30 days.",
  cards: "Time cards",
  noCards: "No time card is running or waiting.",
  toCards: "Redeem a code, see all cards",
  budgets: "Budgets of this account",
  models: "Models",
  noModels: "No model is open to this account’s plan.",
  allUp: (count: number) => (count === 1 ? "The model is up." : `All ${count} models are up.`),
  someInTrouble: (count: number) =>
    count === 1
      ? "A model is in trouble: requests for it may fail."
      : `${count} models are in trouble: requests for them may fail.`,
  up: "Up",
  trouble: "In trouble",
};
