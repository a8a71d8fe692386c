/** The program of the thread that thread.ts starts: one attempt, then it ends. */
import { parentPort, workerData } from "node:worker_threads";
import { type AttemptInput, attempt } from "./attempt.ts";
import { replyOf } from "./reply.ts";

const reply = replyOf(attempt(workerData as AttemptInput));
// The bytes are handed over, not copied.
parentPort?.postMessage(reply, "packed" in reply.made ? [reply.made.packed.buffer] : []);
