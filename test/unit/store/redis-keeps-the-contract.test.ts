import { redisBench } from "./benches.ts";
import { keepsTheContract } from "./contract.ts";

keepsTheContract("redis", () => redisBench());
