/** A worker of node:cluster that asks for a port and does nothing else. */
import { createServer } from "node:net";

createServer().listen(0, "127.0.0.1");
