/** Texts of refusals by code. Empty: the gateway's own messages are in English. */
export const refusals: Readonly<Record<string, readonly [message: string, remedy?: string]>> = {};
