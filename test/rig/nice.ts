/** Loaded first into a process (`--import`) that is to take only what CPU the others leave, and so are its children. */
import { setPriority } from "node:os";

const LAST = 19;
setPriority(LAST);
