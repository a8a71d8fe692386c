/** How a program of several parts ends: none of them keeps another one open. */

/** Closes one part. */
type ClosingStep = () => unknown;

/**
 * Takes steps one after another, those of one list at once, whatever became of the ones before.
 * @param onFailure gets each failure as it comes.
 * @throws the first failure, once every step has been taken.
 */
export async function closeAll(
  steps: readonly (ClosingStep | readonly ClosingStep[])[],
  onFailure: (error: unknown) => void,
): Promise<void> {
  const failures: unknown[] = [];
  for (const step of steps) {
    const atOnce = typeof step === "function" ? [step] : step;
    // Within a promise also what throws before it waits.
    for (const result of await Promise.allSettled(atOnce.map(async (one) => one()))) {
      if (result.status === "fulfilled") continue;
      failures.push(result.reason);
      onFailure(result.reason);
    }
  }
  if (failures.length > 0) throw failures[0];
}
