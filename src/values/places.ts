/** Where things are in the working directory unless somebody says otherwise. */

/** The configuration. */
export const CONFIG_FILE = "tollgate.yaml";
export const DATA_DIR = "./data";
/**
 * All that the demonstration writes, its store, journal and token. A folder of its own: a gateway that is configured later
 * in the same place must not find a journal of play money and give it to a real store.
 */
export const DEMO_DATA_DIR = "./data/demo";
