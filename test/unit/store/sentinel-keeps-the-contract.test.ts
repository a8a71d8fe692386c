import { sentinelBench } from "./benches.ts";
import { keepsTheContract } from "./contract.ts";

keepsTheContract("sentinel", sentinelBench, { clock: false });
