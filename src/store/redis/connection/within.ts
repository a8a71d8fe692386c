/** Time limits for requests to Redis. */

/**
 * Rejects after `limitMs`. We use our own timer because ioredis 6.0.0 may leave a promise unsettled when the connection
 * is lost (https://github.com/redis/ioredis/issues/2193).
 */
export function within<T>(limitMs: number, work: () => Promise<T>): Promise<T> {
  // Not Promise.race in an async function: the objects that it makes cost a step 2 us more.
  return new Promise((resolve, reject) => {
    const working = work();
    const timer = setTimeout(
      // Replies that are in the socket by then are read first.
      () => setImmediate(() => reject(new Error(`no reply within ${Math.round(limitMs)} ms`))),
      limitMs,
    );
    working.then(
      (answer) => {
        clearTimeout(timer);
        resolve(answer);
      },
      (error: unknown) => {
        clearTimeout(timer);
        reject(error);
      },
    );
  });
}
