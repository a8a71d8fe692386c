import { embeddedBench } from "./benches.ts";
import { keepsTheContract } from "./contract.ts";

keepsTheContract("embedded", embeddedBench);
