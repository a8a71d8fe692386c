/** Refusals by their codes: the gateway's own words are English already. */
export const refusals: Readonly<Record<string, readonly [message: string, remedy?: string]>> = {};
