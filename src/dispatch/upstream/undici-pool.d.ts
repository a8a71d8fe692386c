/** The types of undici's pool under the name of its file; the package has them under its own name only. */
declare module "undici/lib/dispatcher/pool.js" {
  export { Pool as default } from "undici";
}
