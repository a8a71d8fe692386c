/** One model server of the soak: the simulator on its own port, as a process that can be killed and restarted. */
import process from "node:process";
import { startSimulator } from "../../src/simulator/server.ts";

const simulator = await startSimulator({ port: Number(process.argv[2] ?? 0) });
process.send?.({ port: simulator.port });
process.on("disconnect", () => process.exit(0));
