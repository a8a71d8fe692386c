/** Closes a program of several parts, so that a failing part keeps no other open. */

/** Closes one part. */
export type ClosingStep = () => unknown;

/**
 * Runs steps one after another, even after failures.
 * @param onFailure called with each failure.
 * @throws the first failure, after every step has run.
 */
export async function closeAll(steps: readonly ClosingStep[], onFailure: (error: unknown) => void): Promise<void> {
  const failures: unknown[] = [];
  for (const step of steps) {
    try {
      await step();
    } catch (error) {
      failures.push(error);
      onFailure(error);
    }
  }
  if (failures.length > 0) throw failures[0];
}
