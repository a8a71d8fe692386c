/** How a program of several parts ends: none of them keeps another one open. */

/** Closes one part. */
export type ClosingStep = () => unknown;

/**
 * Takes steps one after another, whatever became of the ones before.
 * @param onFailure gets each failure as it comes.
 * @throws the first failure, once every step has been taken.
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
