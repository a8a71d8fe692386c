import { clusterBench } from "./benches.ts";
import { keepsTheContract } from "./contract.ts";

keepsTheContract("cluster", clusterBench, { clock: false });
