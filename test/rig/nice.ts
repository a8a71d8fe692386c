/** Loaded first into a process (`--import`) that, with its children, uses only CPU time that others leave. */
import { setPriority } from "node:os";

const LAST = 19;
setPriority(LAST);
