/** The types of undici's pool under the name of its file; the package exports them only under its own name. */
declare module "undici/lib/dispatcher/pool.js" {
  export { Pool as default } from "undici";
}
